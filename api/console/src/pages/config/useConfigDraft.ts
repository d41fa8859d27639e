import { useState } from 'react';

import type { Entry, SecretEntry } from '../../components/form/fields';
import { readDraft, storeDraft } from '../../modules/drafts';
import type { ShownSetting } from './filter-settings';
import { collectPending, type ConfigDraft, EMPTY_DRAFT, type Pending } from './pending';
import { settingEntry } from './read-entry';

const NAME = 'form config';

/** The unsaved changes of the page, and what changes them. */
export interface DraftControl {
  draft: ConfigDraft;
  pending: Pending<ShownSetting>;
  /** Notes what stands in a field; null: the default, undefined: as it is stored. */
  change: (setting: ShownSetting, entry: Entry | null | undefined) => void;
  changeSecret: (setting: ShownSetting, entry: SecretEntry | undefined) => void;
  /** Forgets the change of a setting. */
  drop: (key: string) => void;
  /** Takes note that the changes are to be made to this generation. */
  rebase: (generation: number) => void;
  discard: () => void;
}

function without<V>(record: Record<string, V>, key: string): Record<string, V> {
  return Object.fromEntries(Object.entries(record).filter(([other]) => other !== key));
}

function readStored(): ConfigDraft {
  const stored = readDraft(NAME) as Omit<ConfigDraft, 'secrets'> | undefined;
  return stored === undefined ? EMPTY_DRAFT : { ...stored, secrets: {} };
}

/** Keeps the unsaved changes over a reload, but no secrets and no document that may hold some. */
export function useConfigDraft(settings: ShownSetting[], generation: number): DraftControl {
  const [draft, setDraft] = useState(readStored);
  const pending = collectPending(settings, draft);
  const update = (next: ConfigDraft): void => {
    setDraft(next);
    const unstored = new Set(settings.flatMap(({ key, mayHoldSecrets }) => (mayHoldSecrets ? key : [])));
    const entries = Object.entries(next.entries).filter(([key]) => !unstored.has(key));
    const kept = { entries: Object.fromEntries(entries), generation: next.generation };
    storeDraft(NAME, entries.length === 0 ? undefined : kept);
  };
  const base = pending.keys.length > 0 ? draft.generation : generation;
  return {
    draft,
    pending,
    change: (setting, entry) => {
      const rest = without(draft.entries, setting.key);
      const isStored = entry === undefined || entry === settingEntry(setting);
      update({ ...draft, generation: base, entries: isStored ? rest : { ...rest, [setting.key]: entry } });
    },
    changeSecret: ({ key }, entry) => {
      const rest = without(draft.secrets, key);
      update({ ...draft, generation: base, secrets: entry === undefined ? rest : { ...rest, [key]: entry } });
    },
    drop: (key) =>
      update({ ...draft, entries: without(draft.entries, key), secrets: without(draft.secrets, key) }),
    rebase: (now) => update({ ...draft, generation: now }),
    discard: () => update(EMPTY_DRAFT),
  };
}
