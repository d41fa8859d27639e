import { keepPreviousData, queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

/** An image on the engine. */
export type ImageRow = Schemas['ImageItem'];
/** A pull that runs or was requested. */
export type ImagePull = Schemas['ImagePull'];

/** The registry's answer is kept by the server for as long. */
const REGISTRY_AGE = 300_000;

/** A page of the engine's images, read again at each change of any object: users come and go. */
export function imagesQuery(query: Record<string, unknown>) {
  return queryOptions({
    queryKey: keys.list('reconcile', { path: 'images', ...query }),
    queryFn: ({ signal }) => get<Schemas['Images']>('/api/admin/images', query, { signal }),
    placeholderData: keepPreviousData,
  });
}

/** All tags of the configured repository that are on the engine, newest first. */
export const localTagsQuery = queryOptions({
  queryKey: keys.list('image', { tags: 'all' }),
  queryFn: ({ signal }) => get<Schemas['ImageTags']>('/api/admin/images/local-tags', {}, { signal }),
});

/** A page of the tags in a registry, of the configured repository where `image` is empty. */
export function registryQuery(query: Record<string, unknown>) {
  return queryOptions({
    queryKey: ['registry', query] as const,
    queryFn: ({ signal }) => get<Schemas['ImageTags']>('/api/admin/images/registry', query, { signal }),
    placeholderData: keepPreviousData,
    staleTime: REGISTRY_AGE,
    retry: false,
  });
}

/** Has the registry asked again. */
export function refreshRegistry(image: string): Promise<Schemas['ImageTags']> {
  return get('/api/admin/images/registry', { image, refresh: true, page: 1, page_size: 1 });
}

/** Pulls under way and requested; read again while one runs, since progress is no change of an object. */
export const pullsQuery = queryOptions({
  queryKey: keys.list('image', { pulls: true }),
  queryFn: ({ signal }) => get<Schemas['ImagePulls']>('/api/admin/images/pulls', {}, { signal }),
  refetchInterval: ({ state }) => (state.data?.pulls.some(({ running }) => running) === true ? 2000 : false),
});

/** A page of the users who have another image than `tag`. */
export function candidatesQuery(query: Record<string, unknown>) {
  return queryOptions({
    queryKey: keys.list('reconcile', { path: 'candidates', ...query }),
    queryFn: ({ signal }) =>
      get<Schemas['UpgradeCandidates']>('/api/admin/images/upgrade-candidates', query, { signal }),
    placeholderData: keepPreviousData,
  });
}
