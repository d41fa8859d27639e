import { expect, test } from 'vitest';

import type { AgentModel } from '../../api/queries/model';
import { type Draft, EMPTY_DRAFT } from '../../components/form/fields';
import { readModelDraft } from './model-draft';

const provider = (id: string, address: string | null, key: 'required' | 'optional' | 'none') => ({
  id,
  title: id,
  protocol: 'openai',
  address,
  key,
});
const STORED: AgentModel = {
  providers: [
    provider('openai', 'https://api.openai.com/v1', 'required'),
    provider('ollama', null, 'none'),
    provider('compatible', null, 'optional'),
  ],
  configured: true,
  provider: 'openai',
  address: 'https://api.openai.com/v1',
  model: 'gpt-1',
  key_set: true,
  generation: 3,
};
const draft = (entries: Record<string, string>, key?: string): Draft => ({
  entries,
  secrets: key === undefined ? {} : { key: { replace: key } },
});

test('stored choice is unchanged and sends no key', () => {
  const shown = readModelDraft(STORED, EMPTY_DRAFT);
  expect(shown).toMatchObject({ isDirty: false, keepsKey: true, address: '', model: 'gpt-1' });
  expect(shown.form).toEqual({ provider: 'openai', model: 'gpt-1' });
  expect([...shown.missing]).toEqual([]);
});

test('another address needs the key again', () => {
  const shown = readModelDraft(STORED, draft({ address: 'https://proxy.example/v1' }));
  expect(shown.keepsKey).toBe(false);
  expect([...shown.missing]).toEqual(['key']);
  const keyed = readModelDraft(STORED, draft({ address: 'https://proxy.example/v1' }, ' sk-1 '));
  expect(keyed.form).toEqual({
    provider: 'openai',
    address: 'https://proxy.example/v1',
    model: 'gpt-1',
    key: 'sk-1',
  });
});

test('another provider takes nothing of the stored one over', () => {
  const shown = readModelDraft(STORED, draft({ provider: 'ollama' }, 'sk-1'));
  expect(shown.model).toBe('');
  expect([...shown.missing]).toEqual(['address', 'model']);
  expect(shown.form).toEqual({ provider: 'ollama', model: '' });
});

test('without a choice a provider is missing', () => {
  const none = { ...STORED, configured: false, provider: null, address: null, model: null, key_set: false };
  expect([...readModelDraft(none, EMPTY_DRAFT).missing]).toEqual(['provider', 'model']);
});
