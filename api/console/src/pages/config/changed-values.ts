import type { ConfigSaved, Revision } from '../../api/queries/config';
import { MASK } from '../../modules/settings';
import type { ShownSetting } from './filter-settings';
import type { PendingChange } from './pending';

/** A key with its values before and after; null is the default. */
export interface ChangedValue {
  key: string;
  /** Absent for a key that the service does not have any more. */
  setting?: ShownSetting;
  before: unknown;
  after: unknown;
}

const find = (settings: ShownSetting[], key: string): ShownSetting | undefined =>
  settings.find((setting) => setting.key === key);

/** The unsaved changes; a new secret is not among them, only that there is one. */
export function pendingValues(changes: PendingChange<ShownSetting>[]): ChangedValue[] {
  return changes.map(({ setting, kind, value }) => ({
    key: setting.key,
    setting,
    before: setting.value,
    after: kind === 'replace' ? MASK : value,
  }));
}

/** The changes of a save that was made. */
export function revisionValues(revision: Revision, settings: ShownSetting[]): ChangedValue[] {
  return revision.changes.map(({ key, old, new: after }) => ({
    key,
    setting: find(settings, key),
    before: old,
    after,
  }));
}

/** Lists the values that a return to a revision changes; `after` is undefined where the saves since do not go back that far. */
export function rollbackValues(
  answer: ConfigSaved,
  newer: Revision[],
  settings: ShownSetting[],
): ChangedValue[] {
  const past = valuesBefore(newer);
  return answer.changed.map((key) => {
    const setting = find(settings, key);
    return { key, setting, before: setting?.value, after: past.get(key) };
  });
}

/** The values that keys had before all of these saves, the newest of which is first. */
export function valuesBefore(saves: Revision[]): Map<string, unknown> {
  const values = new Map<string, unknown>();
  for (const { changes } of saves) for (const { key, old } of changes) values.set(key, old);
  return values;
}

/** The value that a setting has once the changes are made. */
export function valueAfter(settings: ShownSetting[], changes: ChangedValue[], key: string): unknown {
  const setting = find(settings, key);
  const change = changes.find((one) => one.key === key);
  return change === undefined ? setting?.value : (change.after ?? setting?.default);
}
