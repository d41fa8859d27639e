import { queryOptions } from '@tanstack/react-query';

import { get } from '../client';
import { keys } from '../keys';

/** Provider of models that the adapter lists. */
export interface ModelProvider {
  id: string;
  title: string;
  protocol: string;
  /** Usual address; null: it has none. */
  address: string | null;
  key: 'required' | 'optional' | 'none';
}

/** The model that agents use; its key is never told. */
export interface AgentModel {
  providers: ModelProvider[];
  configured: boolean;
  /** Null without a model, or with one that was written by hand. */
  provider: string | null;
  address: string | null;
  model: string | null;
  key_set: boolean;
  generation: number;
}

/** Reason for which a model did not answer. */
export type ModelFault = 'address' | 'certificate' | 'key' | 'model' | 'quota' | 'answer' | 'timeout';

/** Result of a test. */
export interface ModelTried {
  ok: boolean;
  reason: ModelFault | null;
  message: string;
  remedy: string;
}

/** Form of a choice; without `key` the stored one is kept if provider and address are unchanged. */
export interface ModelForm {
  provider: string;
  address?: string;
  model: string;
  key?: string;
}

export const MODEL_PATH = '/api/admin/agent/model';

/** The model that agents use, read again at each change of any object. */
export const modelQuery = queryOptions({
  queryKey: keys.list('reconcile', { path: MODEL_PATH }),
  queryFn: ({ signal }) => get<AgentModel>(MODEL_PATH, {}, { signal }),
});
