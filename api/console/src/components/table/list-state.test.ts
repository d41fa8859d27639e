import { expect, test } from 'vitest';

import { isNarrowed, listQuery, readListState, writeListState } from './list-state';
import { countChanges } from './useHeldRows';

const FILTERS = ['ready', 'group'];

test('state survives the address', () => {
  const search = { page: '3', search: 'bob', sort: '-last_login', group: ['a', 'b'], ready: 'false' };
  const state = readListState(search, FILTERS);
  expect(state).toEqual({
    page: 3,
    search: 'bob',
    sort: { column: 'last_login', descending: true },
    filters: { group: ['a', 'b'], ready: ['false'] },
  });
  expect(writeListState(state)).toEqual({ ...search, ready: ['false'] });
  expect(listQuery(state)).toMatchObject({ page: 3, page_size: 50, sort: '-last_login' });
});

test('foreign and broken fields of the address are ignored', () => {
  const state = readListState({ page: '-1', sort: 'a; drop', other: 'x', group: '' }, FILTERS);
  expect(state).toEqual({ page: 1, search: '', sort: undefined, filters: {} });
  expect(isNarrowed(state)).toBe(false);
});

test('rows that come, go or move are counted', () => {
  expect(countChanges(['a', 'b'], ['a', 'b'])).toBe(0);
  expect(countChanges(['a', 'b'], ['b', 'c'])).toBe(1);
  expect(countChanges(['a', 'b', 'c'], ['b', 'a', 'c'])).toBe(2);
});
