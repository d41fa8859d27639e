import { expect, test } from 'vitest';

import type { Schemas } from '../../../api/types';
import { chatAppSection, formFields, missingFields, tellingField } from './channel-fields';

const field = (section: string, key: string, more: object = {}, state: object = {}) =>
  ({
    section,
    field: { key, label: key, type: 'text', storage: 'config', path: key, ...more },
    set: false,
    ...state,
  }) as Schemas['AgentFieldState'];

const fields = [
  field('a', 'client_id', { required: true }, { set: true, value: 'me' }),
  field('a', 'client_secret', { type: 'password', secret: true, required: true }),
  field('b', 'mode', { required: true, default: 'x' }),
];

test('channel tells what is missing and whose it is', () => {
  expect(missingFields(formFields(fields, 'a'))).toEqual(['client_secret']);
  expect(missingFields(formFields(fields, 'b'))).toEqual([]);
  expect(tellingField(formFields(fields, 'a'))).toEqual({ label: 'client_id', value: 'me' });
});

test('chat-app channel is known only when there is one that fits', () => {
  expect(chatAppSection(fields)).toBe('a');
  const two = [...fields, field('b', 'client_id'), field('b', 'client_secret')];
  expect(chatAppSection(two)).toBeUndefined();
});
