import { queryOptions } from '@tanstack/react-query';

import { noteAccount } from '../account';
import { get, type RequestOptions } from '../client';
import { keys } from '../keys';
import type { LoginMode, UserInfo } from '../types';

/** Asks whose session it is; notes when it is not that of the account shown here. */
export async function readSession(options: RequestOptions = {}): Promise<UserInfo> {
  const account = await get<UserInfo>('/api/user/info', {}, options);
  noteAccount(account.username);
  return account;
}

/** The account of this session. */
export const sessionQuery = queryOptions({
  queryKey: keys.session,
  queryFn: ({ signal }) => readSession({ signal }),
  staleTime: Infinity,
});

/** Ways to sign in. */
export const loginModeQuery = queryOptions({
  queryKey: keys.loginMode,
  queryFn: ({ signal }) => get<LoginMode>('/api/login/mode', {}, { signal }),
  staleTime: 60_000,
});
