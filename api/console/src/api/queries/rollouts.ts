import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

export type Rollout = Schemas['Rollout'];
/** Result of one user of a rollout. */
export type RolloutUser = Schemas['RolloutUser'];
export type RolloutDetail = Schemas['RolloutDetail'];

const PATH = '/api/admin/images/rollouts';
/** Users of one request, and the most requests for users in certain states. */
const PAGE_SIZE = 200;
const PAGES = 10;

/** A page of rollouts, newest first. */
export function rolloutsQuery(query: Record<string, unknown>) {
  return queryOptions({
    queryKey: keys.list('rollout', query),
    queryFn: ({ signal }) => get<Schemas['Rollouts']>(PATH, query, { signal }),
    placeholderData: keepPreviousData,
  });
}

/** A rollout with a page of its users. */
export function rolloutQuery(id: string, query: Record<string, unknown>) {
  return queryOptions({
    queryKey: [...keys.object('rollout', id), query],
    queryFn: ({ signal }) => readRollout(id, query, signal),
    placeholderData: keepPreviousData,
  });
}

function readRollout(
  id: string,
  query: Record<string, unknown>,
  signal: AbortSignal,
): Promise<RolloutDetail> {
  return get<RolloutDetail>(`${PATH}/${encodeURIComponent(id)}`, query, { signal });
}

/** Reads users until `most` fit, or until all or enough pages were read. */
export async function readUsers(
  id: string,
  fits: (user: RolloutUser) => boolean,
  most: number,
  signal: AbortSignal,
): Promise<RolloutUser[]> {
  const found: RolloutUser[] = [];
  for (let page = 1; page <= PAGES && found.length < most; page += 1) {
    const answer = await readRollout(id, { page, page_size: PAGE_SIZE }, signal);
    found.push(...answer.users.filter(fits));
    if (page >= answer.total_pages) break;
  }
  return found.slice(0, most);
}

/** The first failed users of a rollout, whichever page they are on; read again when their number has changed. */
export function failedUsersQuery(id: string, generation: number, failed: number, most: number) {
  return queryOptions({
    queryKey: ['rollout-failed', id, generation, failed] as const,
    queryFn: ({ signal }) => readUsers(id, ({ state }) => state === 'failed', Math.min(failed, most), signal),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    enabled: failed > 0,
  });
}
