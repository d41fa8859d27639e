import { queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { LoginMode, UserInfo } from '../types';

/** The account of this session. */
export const sessionQuery = queryOptions({
  queryKey: keys.session,
  queryFn: ({ signal }) => get<UserInfo>('/api/user/info', {}, { signal }),
  staleTime: Infinity,
});

/** Ways to sign in. */
export const loginModeQuery = queryOptions({
  queryKey: keys.loginMode,
  queryFn: ({ signal }) => get<LoginMode>('/api/login/mode', {}, { signal }),
  staleTime: 60_000,
});
