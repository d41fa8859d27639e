import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

/** A user with the container, in a list. */
export type UserRow = Schemas['UserItem'];
/** An object with desired and observed state. */
export type Described = Schemas['ObjectDetail'];

/** A page of the users that fit. */
export function usersQuery(query: Record<string, unknown>) {
  return queryOptions({
    queryKey: keys.list('user', query),
    queryFn: ({ signal }) => get<Schemas['Users']>('/api/admin/users', query, { signal }),
    placeholderData: keepPreviousData,
  });
}

/** The row of one user in the list: groups, image, source. */
export function userRowQuery(name: string) {
  return queryOptions({
    queryKey: [...keys.object('user', name), 'row'],
    queryFn: async ({ signal }) => {
      const query = { name, page: 1, page_size: 200 };
      const { users } = await get<Schemas['Users']>('/api/admin/users', query, { signal });
      return users.find(({ username }) => username === name) ?? null;
    },
  });
}

/** One object: desired, observed, conditions, next steps. */
export function describeQuery(kind: string, name: string) {
  return queryOptions({
    queryKey: [...keys.object(kind, name), 'describe'],
    queryFn: ({ signal }) =>
      get<Described>(
        `/api/admin/reconcile/objects/${encodeURIComponent(kind)}/${encodeURIComponent(name)}`,
        {},
        { signal },
      ),
  });
}

/** A page of something that belongs to one user, such as events. */
export function ofUserQuery<T>(name: string, path: string, query: Record<string, unknown>) {
  return queryOptions({
    queryKey: [...keys.object('user', name), path, query],
    queryFn: ({ signal }) => get<T>(path, query, { signal }),
    placeholderData: keepPreviousData,
  });
}

/** All groups, for choices. */
export const groupsQuery = queryOptions({
  queryKey: keys.list('group', { page: 1, page_size: 200 }),
  queryFn: ({ signal }) =>
    get<Schemas['Groups']>('/api/admin/groups', { page: 1, page_size: 200 }, { signal }),
});

/** Tags of the configured image on the engine, newest first, for choices. */
export const tagsQuery = queryOptions({
  queryKey: keys.list('image', { tags: true }),
  queryFn: ({ signal }) =>
    get<Schemas['ImageTags']>('/api/admin/images/local-tags', { page: 1, page_size: 200 }, { signal }),
});
