import { queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

/** All API tokens; an installation has few. */
export const apiTokensQuery = queryOptions({
  queryKey: keys.list('api-token'),
  queryFn: ({ signal }) => get<Schemas['ApiTokens']>('/api/admin/api-tokens', {}, { signal }),
  // No event tells of changes by others.
  staleTime: 0,
});
