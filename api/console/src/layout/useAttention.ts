import { queryOptions, useQuery } from '@tanstack/react-query';

import { get } from '../api/client';
import { keys } from '../api/keys';
import type { Schemas } from '../api/types';

/** Leader, health and the numbers of all reconcilers. */
export const reconcileQuery = queryOptions({
  queryKey: keys.reconcile,
  queryFn: ({ signal }) => get<Schemas['Overview']>('/api/admin/reconcile', {}, { signal }),
});

/** The number of objects of each kind that are in back-off, for the menu. */
export function useAttention(): Record<string, number> {
  const { data } = useQuery(reconcileQuery);
  return Object.fromEntries((data?.reconcilers ?? []).map(({ name, failing }) => [name, failing]));
}
