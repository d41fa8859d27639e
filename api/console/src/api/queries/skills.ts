import { queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

/** The row of one skill in the list: bindings, size, state; null when there is none of the name. */
export function skillQuery(name: string) {
  return queryOptions({
    queryKey: [...keys.object('skill', name), 'row'],
    queryFn: async ({ signal }) => {
      const query = { search: name, page: 1, page_size: 200 };
      const { skills } = await get<Schemas['Skills']>('/api/admin/skills', query, { signal });
      return skills.find((skill) => skill.name === name) ?? null;
    },
  });
}

/** The versions of a skill, newest first. */
export function skillVersionsQuery(name: string) {
  return queryOptions({
    queryKey: [...keys.object('skill', name), 'versions'],
    queryFn: async ({ signal }) => {
      const { versions } = await get<Schemas['SkillVersions']>(
        '/api/admin/skills/versions',
        { name },
        { signal },
      );
      return versions;
    },
  });
}

/** Repositories that are shown at once. */
const REPOSITORIES = 200;

/** The repositories that skills come from. */
export const repositoriesQuery = queryOptions({
  queryKey: keys.list('reconcile', { repositories: true }),
  queryFn: ({ signal }) => {
    const query = { page: 1, page_size: REPOSITORIES };
    return get<Schemas['Repositories']>('/api/admin/skills/repos/list', query, { signal });
  },
});
