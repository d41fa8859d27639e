import { useState } from 'react';

interface Held<R> {
  key: string;
  ids: string[];
  rows: Map<string, R>;
}

/** Rows in the order in which the reader first saw them. */
export interface HeldRows<R> {
  rows: R[] | undefined;
  /** Number of rows that came, went or moved since. */
  changed: number;
  /** Takes over the present order. */
  update: () => void;
}

/**
 * Keeps rows where they are while they change beneath the reader: a row's content is renewed in place,
 * rows that come, go or move are counted until `update`. Another `key` (page, sorting, filters) begins anew.
 */
export function useHeldRows<R>(rows: R[] | undefined, rowId: (row: R) => string, key: string): HeldRows<R> {
  const [held, setHeld] = useState<Held<R>>();
  if (rows === undefined) return { rows, changed: 0, update: () => undefined };
  const ids = rows.map(rowId);
  const fresh = new Map(rows.map((row) => [rowId(row), row]));
  const take = (): void => setHeld({ key, ids, rows: fresh });
  if (held?.key !== key) {
    take();
    return { rows, changed: 0, update: take };
  }
  const shown = held.ids.flatMap((id) => fresh.get(id) ?? held.rows.get(id) ?? []);
  return { rows: shown, changed: countChanges(held.ids, ids), update: take };
}

/** Counts the ids that came or went, whichever are more; when there are none, those at another place. */
export function countChanges(before: string[], after: string[]): number {
  const [old, now] = [new Set(before), new Set(after)];
  const gone = before.filter((id) => !now.has(id)).length;
  const come = after.filter((id) => !old.has(id)).length;
  return Math.max(gone, come) || before.filter((id, at) => after[at] !== id).length;
}
