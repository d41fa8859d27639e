import { expect, test } from 'vitest';

import { compareFacts, observedOnly } from './compare-facts';
import { valueKind } from './value-kind';

const desired = { image: 'echo:2', running: true, network: 'agentyard', restart_token: '' };
const observed = { image_ref: 'echo:1', running: true, network: null, ip: '10.0.0.2' };

test('only what is known on both sides differs', () => {
  const rows = compareFacts(desired, observed);
  expect(rows.filter(({ differs }) => differs).map(({ name }) => name)).toEqual(['image']);
  expect(rows.map(({ observed: found }) => found)).toEqual(['echo:1', true, null, undefined]);
  expect(compareFacts(desired, null).some(({ differs }) => differs)).toBe(false);
});

test('image is found under the names of its kind', () => {
  const [row] = compareFacts({ image: 'echo:2' }, { reference: 'echo:2' });
  expect(row).toMatchObject({ observed: 'echo:2', differs: false });
});

test('facts without a desired side are listed apart', () => {
  expect(observedOnly(desired, observed)).toEqual([['ip', '10.0.0.2']]);
  expect(observedOnly(null, observed)).toHaveLength(4);
});

test('name and type tell how a value is shown', () => {
  expect(valueKind('used_bytes', 20480)).toBe('bytes');
  expect(valueKind('cpu_limit', 0.5)).toBe('cores');
  expect(valueKind('sync_interval_seconds', 3600)).toBe('seconds');
  expect(valueKind('created_at', '2026-11-27T12:40:13.83Z')).toBe('time');
  expect(valueKind('failure_log', ['one', 'two'])).toBe('lines');
  expect(valueKind('skills', ['pdf'])).toBe('words');
  expect(valueKind('ends', [{ at: '' }])).toBe('nested');
  expect(valueKind('deployed', [])).toBe('nothing');
});
