import type { Entry, FormField } from '../../components/form/fields';
import { entryOf } from '../../components/form/fields';
import type { MessageKey } from '../../i18n';
import type { Setting } from '../../modules/settings';

/** Reason for which an entry cannot be sent. */
export interface EntryProblem {
  key: MessageKey;
  values?: Record<string, string>;
}

/** Meaning of an entry: a value, or null for the default. */
export type ReadSetting = { value: unknown } | { problem: EntryProblem };

/** Returns the kind of field that a setting is edited in. */
export function fieldType({ type, options, key }: Setting): FormField['type'] {
  if (type === 'boolean' || type === 'integer' || type === 'number') return type;
  if (type === 'array') return 'string_list';
  if (type === 'object') return 'json';
  if (options !== undefined) return 'select';
  return key.endsWith('.ca_certificate') ? 'long_text' : 'text';
}

/** Returns true for a secret that is one text: set or not set, replaced or removed. */
export function isSecretText({ isSecret, type }: Setting): boolean {
  return isSecret && type === 'string';
}

/** Returns the value of a setting as it stands in its field. */
export function settingEntry(setting: Setting): Entry {
  const { key, value } = setting;
  return entryOf({ key, label: key, type: fieldType(setting), set: true, value, default: setting.default });
}

/** Returns the default as it stands in the field. */
export function defaultEntry(setting: Setting): Entry {
  return settingEntry({ ...setting, value: setting.default });
}

/** Reads an entry as the value that is sent. */
export function readSetting(setting: Setting, entry: Entry | null): ReadSetting {
  if (entry === null || typeof entry === 'boolean') return { value: entry };
  const type = fieldType(setting);
  const text = type === 'long_text' ? entry : entry.trim();
  if (type === 'string_list') {
    const items = text.split('\n').map((item) => item.trim());
    return { value: items.filter((item) => item !== '') };
  }
  if (type === 'integer' || type === 'number') {
    if (text === '') return { value: null };
    const number = Number(text);
    return Number.isFinite(number) ? { value: number } : { problem: { key: 'form.number.bad' } };
  }
  return type === 'json' ? readDocument(text) : { value: text };
}

function readDocument(text: string): ReadSetting {
  if (text === '') return { value: null };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    const [, line, column] = /line (\d+) column (\d+)/.exec(String(thrown)) ?? [];
    if (line === undefined || column === undefined) return { problem: { key: 'form.json.bad' } };
    return { problem: { key: 'config.json.bad', values: { line, column } } };
  }
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? { value } : { problem: { key: 'config.json.object' } };
}
