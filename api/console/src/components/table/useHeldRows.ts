import { useEffect, useState } from 'react';

/** So long a list that was just opened takes its rows anew, in milliseconds: at first it shows those of the last visit. */
const OPENING = 3000;

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
 * rows that come, go or move are counted until `update`. Another `key` (page, sorting, filters) begins anew; a list without rows
 * takes the first ones at once.
 */
export function useHeldRows<R>(rows: R[] | undefined, rowId: (row: R) => string, key: string): HeldRows<R> {
  const [held, setHeld] = useState<Held<R>>();
  const [settled, setSettled] = useState<string>();
  useEffect(() => {
    const timer = setTimeout(() => setSettled(key), OPENING);
    return () => clearTimeout(timer);
  }, [key]);
  if (rows === undefined) return { rows, changed: 0, update: () => undefined };
  const ids = rows.map(rowId);
  const fresh = new Map(rows.map((row) => [rowId(row), row]));
  const take = (): void => setHeld({ key, ids, rows: fresh });
  const changed = held?.key === key ? countChanges(held.ids, ids) : 0;
  const isOpening = settled !== key || held?.ids.length === 0;
  if (held?.key !== key || (changed > 0 && isOpening)) {
    take();
    return { rows, changed: 0, update: take };
  }
  const shown = held.ids.flatMap((id) => fresh.get(id) ?? held.rows.get(id) ?? []);
  return { rows: shown, changed, update: take };
}

/** Counts the ids that came or went, whichever are more; when there are none, those at another place. */
export function countChanges(before: string[], after: string[]): number {
  const [old, now] = [new Set(before), new Set(after)];
  const gone = before.filter((id) => !now.has(id)).length;
  const come = after.filter((id) => !old.has(id)).length;
  return Math.max(gone, come) || before.filter((id, at) => after[at] !== id).length;
}
