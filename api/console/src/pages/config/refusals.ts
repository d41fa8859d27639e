import type { Failure } from '../../api/failure';

/** Sentences of the server about refused values, by key; those of no setting are in `other`. */
export interface Refusals {
  byKey: Record<string, string>;
  other: string[];
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Sorts the problems of a refused save by the settings that they are about. */
export function readRefusals(failure: Failure, keys: ReadonlySet<string>): Refusals {
  const found: Refusals = { byKey: {}, other: [] };
  if (failure.code === 'network_in_use') found.byKey['container.network_subnet'] = capital(failure.message);
  for (const problem of failure.problems as unknown as { key?: string; message: string }[]) {
    const { key = '', message } = problem;
    if (!keys.has(key)) found.other.push(message);
    else {
      // The key stands at the field.
      const rest = message.startsWith(key) ? message.slice(key.length).replace(/^[\s:]+/, '') : message;
      const text = capital(rest);
      found.byKey[key] = found.byKey[key] === undefined ? text : `${found.byKey[key]}; ${text}`;
    }
  }
  return found;
}
