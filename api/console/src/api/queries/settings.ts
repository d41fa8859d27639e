import { queryOptions } from '@tanstack/react-query';

import type { SettingSchema } from '../../modules/settings';
import { get } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

/** The configuration in effect, secrets masked; read again at each change of any object. */
export const configQuery = queryOptions({
  queryKey: keys.list('reconcile', { path: '/api/config' }),
  queryFn: ({ signal }) => get<Schemas['Configuration']>('/api/config', {}, { signal }),
});

/** All settings with their defaults: the same until the service is another one. */
export const configSchemaQuery = queryOptions({
  queryKey: ['config-schema'],
  queryFn: ({ signal }) => get<{ schema: SettingSchema }>('/api/admin/config/schema', {}, { signal }),
  staleTime: 3_600_000,
});
