import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Page } from '../types';

/** A page of a list of the administrator, read again at each change of any object. */
export function listedQuery(path: string, query: Record<string, unknown>) {
  return queryOptions({
    queryKey: keys.list('reconcile', { path, ...query }),
    queryFn: ({ signal }) => get<Page>(path, query, { signal }),
    placeholderData: keepPreviousData,
  });
}
