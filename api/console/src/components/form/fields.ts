import type { Failure } from '../../api/failure';

/** A field of a form, as the schema of a channel or of the configuration describes it. */
export interface FormField {
  key: string;
  label: string;
  type:
    'boolean' | 'integer' | 'number' | 'text' | 'long_text' | 'password' | 'select' | 'string_list' | 'json';
  description?: string;
  options?: string[];
  secret?: boolean;
  required?: boolean;
  default?: unknown;
  /** True when a value is set; of a secret nothing else is known. */
  set: boolean;
  value?: unknown;
}

/** Value typed into a field. */
export type Entry = string | boolean;

/** Change of a secret; absent: the secret stays. */
export type SecretEntry = { replace: string } | 'remove';

/** All that was changed in a form and is not saved yet. */
export interface Draft {
  entries: Record<string, Entry>;
  secrets: Record<string, SecretEntry>;
}

export const EMPTY_DRAFT: Draft = { entries: {}, secrets: {} };

/** Returns true when the value of a field is never shown. */
export function isSecret(field: FormField): boolean {
  return field.secret === true || field.type === 'password';
}

/** A field's value as it stands in its input. */
export function entryOf(field: FormField): Entry {
  const value =
    field.value ?? (field.type === 'boolean' || field.type === 'select' ? field.default : undefined);
  if (field.type === 'boolean') return value === true;
  if (value === undefined || value === null) return '';
  if (Array.isArray(value) && field.type === 'string_list') return value.join('\n');
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

/** Reasons for which an entry cannot be sent. */
export type EntryProblem = 'form.json.bad' | 'form.number.bad' | 'form.required';

/** Result of reading an entry. */
export type ReadEntry = { value: unknown } | { problem: EntryProblem };

/** Reads an entry as the value that is sent; an empty one clears the field. */
export function readEntry(field: FormField, entry: Entry): ReadEntry {
  if (typeof entry === 'boolean') return { value: entry };
  const text = entry.trim();
  if (text === '') return field.required === true ? { problem: 'form.required' } : { value: null };
  if (field.type === 'string_list') {
    const items = text.split('\n').map((item) => item.trim());
    return { value: items.filter((item) => item !== '') };
  }
  if (field.type === 'integer' || field.type === 'number') {
    const number = Number(text);
    const fits = Number.isFinite(number) && (field.type === 'number' || Number.isInteger(number));
    return fits ? { value: number } : { problem: 'form.number.bad' };
  }
  if (field.type !== 'json') return { value: entry };
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return { problem: 'form.json.bad' };
  }
}

/** Values that a form sends, and errors of its fields. */
export interface Changes {
  values: Record<string, unknown>;
  problems: Record<string, EntryProblem>;
}

/** Collects the changed fields: what was not touched is absent, secrets above all. */
export function collectChanges(fields: FormField[], draft: Draft): Changes {
  const changes: Changes = { values: {}, problems: {} };
  for (const field of fields) {
    if (isSecret(field)) {
      const secret = draft.secrets[field.key];
      if (secret === 'remove') changes.values[field.key] = null;
      else if (secret !== undefined && secret.replace !== '') changes.values[field.key] = secret.replace;
      continue;
    }
    const entry = draft.entries[field.key];
    if (entry === undefined || entry === entryOf(field)) continue;
    const read = readEntry(field, entry);
    if ('problem' in read) changes.problems[field.key] = read.problem;
    else changes.values[field.key] = read.value;
  }
  return changes;
}

/** Returns true when a field was changed. */
export function isDirty(fields: FormField[], draft: Draft): boolean {
  const { values, problems } = collectChanges(fields, draft);
  return Object.keys(values).length + Object.keys(problems).length > 0;
}

/** The server's sentences about refused values, by the key of their field; "" for those of no field. */
export function refusals(failure: Failure, fields: FormField[]): Record<string, string> {
  const said: Record<string, string> = {};
  const { field } = failure.details;
  if (typeof field === 'string') said[fieldOf(field, fields)] = failure.message;
  for (const problem of failure.problems as unknown as Record<string, string>[]) {
    const key = fieldOf(problem.pointer ?? problem.key ?? '', fields);
    said[key] = said[key] === undefined ? (problem.message ?? '') : `${said[key]}; ${problem.message ?? ''}`;
  }
  return said;
}

/** The field that a JSON pointer (`/values/token/0`) or a name (`token`) leads to. */
function fieldOf(pointer: string, fields: FormField[]): string {
  const unescape = (part: string): string => part.replaceAll('~1', '/').replaceAll('~0', '~');
  const parts = pointer.startsWith('/') ? pointer.slice(1).split('/').map(unescape) : [pointer];
  return fields.find(({ key }) => parts.includes(key) || parts.join('.') === key)?.key ?? '';
}
