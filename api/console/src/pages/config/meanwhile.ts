import type { Revision } from '../../api/queries/config';

/** A setting that was saved while changes were unsaved. */
export interface MeanwhileChange {
  key: string;
  /** Accounts that saved it, the newest first. */
  actors: string[];
  /** Value before these saves; null: the default. */
  before: unknown;
  after: unknown;
  /** There is an unsaved change of it. */
  isMine: boolean;
}

/** Sums up saves, of which the newest is first; those of settings with unsaved changes come first. */
export function meanwhileChanges(saves: Revision[], mine: string[]): MeanwhileChange[] {
  const found = new Map<string, MeanwhileChange>();
  for (const { actor, changes } of saves) {
    for (const { key, old, new: after } of changes) {
      const one = found.get(key);
      if (one === undefined)
        found.set(key, { key, actors: [actor], before: old, after, isMine: mine.includes(key) });
      else {
        one.before = old;
        if (!one.actors.includes(actor)) one.actors.push(actor);
      }
    }
  }
  return [...found.values()].sort((a, b) => Number(b.isMine) - Number(a.isMine));
}
