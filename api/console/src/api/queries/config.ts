import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import type { SettingSchema } from '../../modules/settings';
import { get, getRaw, post } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

/** One save of the configuration. */
export type Revision = Schemas['ConfigRevision'];
/** Result of a save, or of its preview. */
export type ConfigSaved = Schemas['ConfigSaved'];
export type Purge = Schemas['Purge'];
export type Rollout = Schemas['Rollout'];

const CONFIG_PATH = '/api/config';
const HISTORY_PATH = '/api/admin/config/history';
const ROLLOUTS_PATH = '/api/admin/images/rollouts';
/** The most that the server lists at once. */
const HISTORY_PAGE = 50;
/** Some settings have no object that follows from them, so that the stream does not tell of their changes. */
const EVERY = 15_000;

/** The configuration in effect with its generation. */
export interface StoredConfig {
  /** All settings, secrets masked. */
  document: Schemas['Configuration'];
  generation: number;
}

/** The configuration in effect; read again at each change of any object. */
export const configQuery = queryOptions({
  queryKey: keys.list('reconcile', { path: CONFIG_PATH }),
  queryFn: async ({ signal }): Promise<StoredConfig> => {
    const response = await getRaw(CONFIG_PATH, {}, { signal, accept: 'application/json' });
    const document = (await response.json()) as Schemas['Configuration'];
    return { document, generation: Number(response.headers.get('X-Config-Generation')) };
  },
  refetchInterval: EVERY,
});

/** All settings with their defaults: the same until the service is another one. */
export const configSchemaQuery = queryOptions({
  queryKey: ['config-schema'],
  queryFn: ({ signal }) => get<{ schema: SettingSchema }>('/api/admin/config/schema', {}, { signal }),
  staleTime: 3_600_000,
});

/** A page of the history, newest first. */
export function historyQuery(query: Record<string, unknown>) {
  return queryOptions({
    queryKey: keys.list('reconcile', { path: HISTORY_PATH, ...query }),
    queryFn: ({ signal }) => get<Schemas['ConfigHistory']>(HISTORY_PATH, query, { signal }),
    placeholderData: keepPreviousData,
    refetchInterval: EVERY,
  });
}

/** Reads all saves after a revision, newest first, up to `pages` pages. */
export async function readRevisionsAfter(
  revision: number,
  signal?: AbortSignal,
  pages = 4,
): Promise<Revision[]> {
  const found: Revision[] = [];
  for (let page = 1; page <= pages; page += 1) {
    const query = { page, page_size: HISTORY_PAGE };
    const answer = await get<Schemas['ConfigHistory']>(HISTORY_PATH, query, { signal });
    const newer = answer.history.filter((one) => one.revision > revision);
    found.push(...newer);
    if (newer.length < answer.history.length || page >= answer.total_pages) break;
  }
  return found;
}

/** Saves after a revision, for a form that is based on it. */
export function revisionsAfterQuery(revision: number, generation: number) {
  return queryOptions({
    queryKey: ['config-revisions', revision, generation],
    queryFn: ({ signal }) => readRevisionsAfter(revision, signal),
  });
}

/** Conditions of a save. */
export interface SaveTerms {
  dry_run?: boolean;
  if_generation?: number;
  /** Digest of the plan of a change of the mode. */
  confirm?: string;
  /** Changes the mode without a test. */
  force?: boolean;
}

/** Saves values by key, or shows what that would do; null returns a key to its default. */
export function saveConfig(
  values: Record<string, unknown>,
  terms: SaveTerms,
  signal?: AbortSignal,
): Promise<ConfigSaved> {
  return post(CONFIG_PATH, { config: JSON.stringify(values), ...terms }, { signal });
}

/** Restores all keys but secrets as of a revision, or shows what that would do. */
export function rollBackConfig(
  revision: number,
  terms: SaveTerms,
  signal?: AbortSignal,
): Promise<ConfigSaved> {
  return post('/api/admin/config/rollback', { revision, ...terms }, { signal });
}

/** The newest rollouts; read again at each change of any object. */
export const newestRolloutsQuery = queryOptions({
  queryKey: keys.list('reconcile', { path: ROLLOUTS_PATH, newest: true }),
  queryFn: ({ signal }) => get<Schemas['Rollouts']>(ROLLOUTS_PATH, { page: 1, page_size: 20 }, { signal }),
});

/** A rollout with the results of its first users. */
export function rolloutUsersQuery(id: string) {
  return queryOptions({
    queryKey: keys.list('reconcile', { path: ROLLOUTS_PATH, id }),
    queryFn: ({ signal }) =>
      get<Schemas['RolloutDetail']>(
        `${ROLLOUTS_PATH}/${encodeURIComponent(id)}`,
        { page: 1, page_size: 200 },
        { signal },
      ),
  });
}
