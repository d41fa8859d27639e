import type { Entry, SecretEntry } from '../../components/form/fields';
import type { Setting } from '../../modules/settings';
import { type EntryProblem, isSecretText, readSetting } from './read-entry';

/** All that was changed on the page and is not saved yet. */
export interface ConfigDraft {
  /** Entries of fields that were touched; null: the default. */
  entries: Record<string, Entry | null>;
  secrets: Record<string, SecretEntry>;
  /** Generation of the configuration that the first change was made to. */
  generation?: number;
}

export const EMPTY_DRAFT: ConfigDraft = { entries: {}, secrets: {} };

/** A change that is not saved yet. */
export interface PendingChange<S extends Setting = Setting> {
  setting: S;
  kind: 'set' | 'reset' | 'replace' | 'remove';
  /** As it is sent: null for the default. */
  value: unknown;
}

/** The changes of a draft, and what cannot be sent. */
export interface Pending<S extends Setting = Setting> {
  changes: PendingChange<S>[];
  problems: Record<string, EntryProblem>;
  /** Keys of both, in the order of the settings. */
  keys: string[];
}

/** Finds what a draft changes; an untouched secret is not among it. */
export function collectPending<S extends Setting>(settings: S[], draft: ConfigDraft): Pending<S> {
  const pending: Pending<S> = { changes: [], problems: {}, keys: [] };
  const add = (change: PendingChange<S>): void => void pending.changes.push(change);
  for (const setting of settings) {
    const { key } = setting;
    const secret = draft.secrets[key];
    const entry = draft.entries[key];
    if (isSecretText(setting)) {
      if (secret === 'remove') add({ setting, kind: 'remove', value: null });
      else if (secret !== undefined && secret.replace !== '')
        add({ setting, kind: 'replace', value: secret.replace });
      continue;
    }
    if (entry === undefined) continue;
    const read = readSetting(setting, entry);
    if ('problem' in read) pending.problems[key] = read.problem;
    else if (read.value !== null) {
      const isSame = JSON.stringify(read.value) === JSON.stringify(setting.value);
      if (!isSame) add({ setting, kind: 'set', value: read.value });
    } else if (!setting.isDefault) add({ setting, kind: 'reset', value: null });
  }
  const changed = new Set([
    ...pending.changes.map(({ setting }) => setting.key),
    ...Object.keys(pending.problems),
  ]);
  pending.keys = settings.map(({ key }) => key).filter((key) => changed.has(key));
  return pending;
}

/** Returns the values that are sent, by key. */
export function valuesOf(changes: PendingChange[]): Record<string, unknown> {
  return Object.fromEntries(changes.map(({ setting, value }) => [setting.key, value]));
}
