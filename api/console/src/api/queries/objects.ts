import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

/** A page of the objects of one kind. */
export function objectsQuery(kind: Schemas['ObjectKind'], query: Record<string, unknown>) {
  return queryOptions({
    queryKey: keys.list(kind, query),
    queryFn: ({ signal }) =>
      get<Schemas['Objects']>('/api/admin/reconcile/objects', { reconciler: kind, ...query }, { signal }),
    placeholderData: keepPreviousData,
  });
}
