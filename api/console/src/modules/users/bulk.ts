import type { Schemas } from '../../api/types';
import type { ListState } from '../../components/table/list-state';
import type { Selection } from '../../components/table/useSelection';

/** Actions on several users. */
export type BulkAction = Schemas['UserAction'];

/** Whom an action is for: named users, or all that fit a filter. */
export type BulkTarget = { users: string[] } | { filter: Record<string, string | boolean> };

/** Whom a request is for: with the number of users that the preview told, the server refuses another one. */
export type BulkScope = BulkTarget & { expect_total?: number };

const FLAGS = new Set(['ready', 'disabled']);

/** The filters of the list as those of a request for all users that fit. */
export function bulkFilter({ search, filters }: ListState): Record<string, string | boolean> {
  const filter: Record<string, string | boolean> = {};
  if (search !== '') filter.name = search;
  for (const [name, [value = '']] of Object.entries(filters)) {
    if (name === 'not_ready') filter.ready = value !== 'true';
    else filter[name] = FLAGS.has(name) ? value === 'true' : value;
  }
  return filter;
}

/** The users of a selection: by name, or the filter when all that fit are chosen. */
export function bulkTarget(selection: Pick<Selection, 'all' | 'ids'>, state: ListState): BulkTarget {
  return selection.all ? { filter: bulkFilter(state) } : { users: [...selection.ids].sort() };
}

/** Narrows an action to what was previewed: to its users where all are named, else to their number. */
export function previewedScope(
  target: BulkTarget,
  { users, total }: Pick<Schemas['UsersChanged'], 'users' | 'total'>,
): BulkScope {
  return users.length === total ? { users } : { ...target, expect_total: total };
}
