import { useCallback, useState } from 'react';

import { type Draft, EMPTY_DRAFT } from './fields';

/** Unsaved changes of a form, which survive a reload; secrets are never stored. */
export interface DraftControl {
  draft: Draft;
  change: (next: Draft) => void;
  discard: () => void;
}

function readDraft(storageKey: string): Draft {
  try {
    const stored = sessionStorage.getItem(storageKey);
    if (stored === null) return EMPTY_DRAFT;
    return { entries: JSON.parse(stored) as Draft['entries'], secrets: {} };
  } catch {
    return EMPTY_DRAFT;
  }
}

function storeDraft(storageKey: string, { entries }: Draft): void {
  try {
    if (Object.keys(entries).length === 0) sessionStorage.removeItem(storageKey);
    else sessionStorage.setItem(storageKey, JSON.stringify(entries));
  } catch {
    // Storage may be full or switched off: then a reload loses the changes.
  }
}

/** Keeps the unsaved changes of the form `name`. */
export function useDraft(name: string): DraftControl {
  const storageKey = `agentyard-draft-${name}`;
  const [draft, setDraft] = useState(() => readDraft(storageKey));
  const change = useCallback(
    (next: Draft) => {
      setDraft(next);
      storeDraft(storageKey, next);
    },
    [storageKey],
  );
  const discard = useCallback(() => change(EMPTY_DRAFT), [change]);
  return { draft, change, discard };
}
