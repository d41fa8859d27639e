import type { T } from '../../i18n';
import { visibleText } from '../../modules/visible-text';

const LONGEST = 120;

/** Returns true for a value that stands for nothing. */
export function isEmptyValue(value: unknown): boolean {
  return (
    value === undefined ||
    value === null ||
    value === '' ||
    (typeof value === 'object' && Object.keys(value).length === 0)
  );
}

/** A value in a line; undefined for what is empty or too long for one. */
export function lineOf(value: unknown, t: T): string | undefined {
  if (isEmptyValue(value)) return undefined;
  if (typeof value === 'boolean') return t(value ? 'form.on' : 'form.off');
  const isList = Array.isArray(value) && value.every((item) => typeof item === 'string');
  const text = isList
    ? value.join(', ')
    : typeof value === 'string'
      ? value.trimEnd()
      : JSON.stringify(value);
  return text.includes('\n') || text.length > LONGEST ? undefined : visibleText(text);
}
