import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

/** Pages of groups that are read to find the place of one in the tree. */
const PAGES = 10;

/** All groups, up to 2000 of them, for their tree. */
export const groupTreeQuery = queryOptions({
  queryKey: keys.list('reconcile', { groups: 'tree' }),
  queryFn: async ({ signal }) => {
    const all: Schemas['Group'][] = [];
    for (let page = 1; page <= PAGES; page += 1) {
      const query = { page, page_size: 200 };
      const answer = await get<Schemas['Groups']>('/api/admin/groups', query, { signal });
      all.push(...answer.groups);
      if (page >= answer.total_pages) break;
    }
    return all;
  },
});

/** Members and skills of a group; `query` names page and search of the direct members. */
export function groupMembersQuery(name: string, query: Record<string, unknown>) {
  const request = { ...query, name };
  return queryOptions({
    queryKey: keys.list('reconcile', { group: name, ...query }),
    queryFn: ({ signal }) => get<Schemas['GroupMembers']>('/api/admin/groups/members', request, { signal }),
    placeholderData: keepPreviousData,
  });
}
