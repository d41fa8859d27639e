import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Page, Schemas } from '../types';

type Query = Record<string, unknown>;

/** Ways in which the request for a list differs from a plain one. */
export interface ListedOptions<T> {
  /** Makes the request of the query, such as a time of an age. */
  prepare?: (query: Query) => Query;
  /** Reads the page in another way than from its address. */
  read?: (query: Query, signal: AbortSignal) => Promise<T>;
}

/** A page of a list of the administrator, read again at each change of any object. */
export function listedQuery<T extends Page = Page>(
  path: string,
  query: Query,
  options: ListedOptions<T> = {},
) {
  const { prepare, read } = options;
  return queryOptions({
    queryKey: keys.list('reconcile', { path, ...query }),
    queryFn: ({ signal }) => {
      const request = prepare?.(query) ?? query;
      return read?.(request, signal) ?? get<T>(path, request, { signal });
    },
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
