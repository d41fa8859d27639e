import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

/** The ways of signing in, with what each can do and its settings. */
export const providersQuery = queryOptions({
  queryKey: keys.list('reconcile', { auth: 'providers' }),
  queryFn: ({ signal }) => get<Schemas['Providers']>('/api/admin/auth/providers', {}, { signal }),
});

/** Values of the settings, secrets masked. */
export const authValuesQuery = queryOptions({
  queryKey: keys.list('reconcile', { auth: 'values' }),
  queryFn: ({ signal }) =>
    get<Record<string, Record<string, unknown> | undefined>>('/api/config', {}, { signal }),
});

/** A page of the names that may sign in while the whitelist is enabled. */
export function whitelistQuery(query: Record<string, unknown>) {
  return queryOptions({
    queryKey: keys.list('reconcile', { auth: 'whitelist', ...query }),
    queryFn: ({ signal }) => get<Schemas['Whitelist']>('/api/admin/whitelist', query, { signal }),
    placeholderData: keepPreviousData,
  });
}
