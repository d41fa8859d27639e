import type { Schemas } from '../api/types';

type Group = Pick<Schemas['Group'], 'name' | 'parent'>;

/** Place of a group in the tree. */
export interface GroupPlace<G> {
  group: G | undefined;
  /** From the top to the parent. */
  above: G[];
  /** Groups directly in it. */
  below: G[];
}

/** Finds a group among all; a cycle, which the server refuses, ends the way up. */
export function placeGroup<G extends Group>(all: readonly G[], name: string): GroupPlace<G> {
  const byName = new Map(all.map((group) => [group.name, group]));
  const group = byName.get(name);
  const above: G[] = [];
  for (let at = byName.get(group?.parent ?? ''); at !== undefined && !above.includes(at);) {
    above.unshift(at);
    at = byName.get(at.parent ?? '');
  }
  return { group, above, below: all.filter(({ parent }) => parent === name) };
}
