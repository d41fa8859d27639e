import { queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

/** The whole service at a glance. */
export type Summary = Schemas['ServiceSummary'];
/** Objects that are not ready for the same reason. */
export type Problem = Summary['problems'][number];

/** Numbers, problems and changes of the overview; no event tells how long work waits or what the disk holds. */
export const summaryQuery = queryOptions({
  queryKey: keys.list('reconcile', { summary: true }),
  queryFn: ({ signal }) => get<Summary>('/api/admin/summary', {}, { signal }),
  refetchInterval: 15_000,
});
