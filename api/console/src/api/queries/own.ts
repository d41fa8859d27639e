import { queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

/** How far the own agent is. */
export const initStatusQuery = queryOptions({
  queryKey: keys.initStatus,
  queryFn: ({ signal }) => get<Schemas['InitStatus']>('/api/user/init-status', {}, { signal }),
});
