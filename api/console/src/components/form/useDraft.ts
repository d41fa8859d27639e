import { useCallback, useState } from 'react';

import { readDraft, storeDraft } from '../../modules/drafts';
import { type Draft, EMPTY_DRAFT } from './fields';

/** Unsaved changes of a form, which survive a reload; secrets are never stored. */
export interface DraftControl {
  draft: Draft;
  change: (next: Draft) => void;
  discard: () => void;
}

/** Keeps the unsaved changes of the form `name`. */
export function useDraft(name: string): DraftControl {
  const [draft, setDraft] = useState<Draft>(() => {
    const entries = readDraft(`form ${name}`) as Draft['entries'] | undefined;
    return entries === undefined ? EMPTY_DRAFT : { entries, secrets: {} };
  });
  const change = useCallback(
    (next: Draft) => {
      setDraft(next);
      const { entries } = next;
      storeDraft(`form ${name}`, Object.keys(entries).length === 0 ? undefined : entries);
    },
    [name],
  );
  const discard = useCallback(() => change(EMPTY_DRAFT), [change]);
  return { draft, change, discard };
}
