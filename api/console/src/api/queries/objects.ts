import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Page, Schemas } from '../types';

type Query = Record<string, unknown>;

/**
 * A page of a list of the administrator, read again at each change of any object. `prepare` makes the request of
 * the query, such as a time of an age.
 */
export function listedQuery<T extends Page = Page>(
  path: string,
  query: Query,
  prepare?: (query: Query) => Query,
) {
  return queryOptions({
    queryKey: keys.list('reconcile', { path, ...query }),
    queryFn: ({ signal }) => get<T>(path, prepare?.(query) ?? query, { signal }),
    placeholderData: keepPreviousData,
  });
}

/** Events shown with an object. */
const EVENTS = 50;

/** The newest events of an object. */
export function objectEventsQuery(kind: string, name: string) {
  const query = { object: `${kind}/${name}`, page: 1, page_size: EVENTS };
  return queryOptions({
    queryKey: [...keys.object(kind, name), 'events'],
    queryFn: ({ signal }) => get<Schemas['EventList']>('/api/admin/events', query, { signal }),
  });
}
