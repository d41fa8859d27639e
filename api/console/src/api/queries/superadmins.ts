import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

/** A page of the administrators. */
export function superadminsQuery(query: Record<string, unknown>) {
  return queryOptions({
    queryKey: keys.list('superadmin', query),
    queryFn: ({ signal }) => get<Schemas['Superadmins']>('/api/admin/superadmins', query, { signal }),
    placeholderData: keepPreviousData,
    // No event tells of changes by others.
    staleTime: 0,
  });
}

/** One administrator; null when there is none of the name. */
export function superadminQuery(name: string) {
  return queryOptions({
    queryKey: keys.object('superadmin', name),
    queryFn: async ({ signal }) => {
      const query = { search: name, page: 1, page_size: 200 };
      const { items } = await get<Schemas['Superadmins']>('/api/admin/superadmins', query, { signal });
      return items.find(({ username }) => username === name) ?? null;
    },
    staleTime: 0,
  });
}
