import { useSuspenseQuery } from '@tanstack/react-query';

import { sessionQuery } from '../api/queries/session';
import type { UserInfo } from '../api/types';

/** The account of this session; the routes have read it before a page appears. */
export function useSession(): UserInfo {
  return useSuspenseQuery(sessionQuery).data;
}
