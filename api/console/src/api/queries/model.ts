import { queryOptions } from '@tanstack/react-query';

import type { operations } from '../../generated/schema';
import { get } from '../client';
import { keys } from '../keys';
import type { Schemas } from '../types';

export type ModelProvider = Schemas['ModelProvider'];
export type AgentModel = Schemas['AgentModel'];
export type ModelFault = Schemas['ModelFault'];
/** Result of a test, with the service's sentence. */
export type ModelTried = Schemas['Success'] & Schemas['ModelTried'];
/** Form of a choice; without `key` the stored one is kept if provider and address are unchanged. */
export type ModelForm = Pick<ModelBody, 'provider' | 'address' | 'model' | 'key'>;
type ModelBody = operations['model_try']['requestBody']['content']['application/json'];

export const MODEL_PATH = '/api/admin/agent/model';

/** The model that agents use, read again at each change of any object. */
export const modelQuery = queryOptions({
  queryKey: keys.list('reconcile', { path: MODEL_PATH }),
  queryFn: ({ signal }) => get<AgentModel>(MODEL_PATH, {}, { signal }),
});
