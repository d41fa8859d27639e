/** Way in which a value of an object is shown, by its name and type. */
export type ValueKind =
  | 'nothing'
  | 'flag'
  | 'bytes'
  | 'mebibytes'
  | 'seconds'
  | 'cores'
  | 'number'
  | 'time'
  | 'code'
  | 'text'
  | 'lines'
  | 'words'
  | 'counts'
  | 'nested';

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** Tells how a value is shown. */
export function valueKind(name: string, value: unknown): ValueKind {
  if (value === null || value === undefined || value === '') return 'nothing';
  if (typeof value === 'boolean') return 'flag';
  if (typeof value === 'number') {
    if (name === 'cpu_limit' || name === 'cpu_limit_nanos') return 'cores';
    if (name.endsWith('_bytes')) return 'bytes';
    if (name.endsWith('_mb')) return 'mebibytes';
    if (name.endsWith('_seconds') || name.endsWith('_s')) return 'seconds';
    return 'number';
  }
  if (typeof value === 'string') {
    if (TIME.test(value)) return 'time';
    if (value.includes('\n')) return 'lines';
    return /\s/.test(value) ? 'text' : 'code';
  }
  if (Array.isArray(value)) {
    if (value.length === 0) return 'nothing';
    if (!value.every((one) => typeof one === 'string' || typeof one === 'number')) return 'nested';
    return name === 'log' || name.endsWith('_log') ? 'lines' : 'words';
  }
  const parts: unknown[] = Object.values(value);
  if (parts.length === 0) return 'nothing';
  return parts.every((part) => typeof part === 'number') ? 'counts' : 'nested';
}
