import { expect, test } from 'vitest';

import { listQuery, readListState, writeListState } from '../../components/table/list-state';
import { longTime, readHumanTime } from '../../modules/human-time';
import { tagOf } from '../../modules/users/user-state';
import { bulkTarget, previewedScope } from '../../modules/users/bulk';
import { parseUsers, withPasswords, writeUsers } from './parse-users';
import { usersRequest, USER_FILTERS } from '../../modules/users/user-filters';

const state = (search: Record<string, string | string[]>) => readListState(search, USER_FILTERS);

test('chosen rows are named, and all that match become the filter', () => {
  const shown = state({ search: 'ali', not_ready: 'true', group: 'sales', disabled: 'false' });
  expect(bulkTarget({ all: false, ids: new Set(['zoe', 'bob']) }, shown)).toEqual({ users: ['bob', 'zoe'] });
  expect(bulkTarget({ all: true, ids: new Set() }, shown)).toEqual({
    filter: { name: 'ali', ready: false, group: 'sales', disabled: false },
  });
  expect(bulkTarget({ all: true, ids: new Set() }, state({}))).toEqual({ filter: {} });
});

test('action on all that match is for what was previewed', () => {
  const target = { filter: { group: 'sales' } };
  expect(previewedScope(target, { users: ['bob', 'zoe'], total: 2 })).toEqual({ users: ['bob', 'zoe'] });
  expect(previewedScope(target, { users: ['bob'], total: 214 })).toEqual({ ...target, expect_total: 214 });
});

test('address of the list and its request say the same', () => {
  const shown = state({ search: 'ali', group: ['sales', 'crm'], sort: '-last_login_at', page: '2', x: '1' });
  expect(writeListState(shown)).toEqual({
    search: 'ali',
    group: ['sales', 'crm'],
    sort: '-last_login_at',
    page: '2',
  });
  const request = usersRequest(listQuery(shown));
  expect(request).toMatchObject({ name: 'ali', sort: '-last_login_at', page: 2, page_size: 50 });
  expect(request.search).toBeUndefined();
});

test('pasted names, CSV and single lines are read', () => {
  const csv = 'username,password\r\nbob,"p,""w"" "\r\n carol \n\nbob;x\ndave\tsecret';
  expect(parseUsers(csv)).toEqual({
    users: [
      { name: 'bob', password: 'p,"w" ' },
      { name: 'carol', password: '' },
      { name: 'dave', password: 'secret' },
    ],
    repeated: ['bob'],
  });
  expect(parseUsers('a, b, c').users.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  expect(parseUsers('a, secret').users).toEqual([{ name: 'a', password: 'secret' }]);
  expect(parseUsers(' \n').users).toEqual([]);
  expect(parseUsers(writeUsers([{ username: 'x', password: 'a,"b"' }])).users).toEqual([
    { name: 'x', password: 'a,"b"' },
  ]);
});

test('empty password keeps its place, and given ones stand beside the random ones', () => {
  const { users } = parseUsers('bob,secret word\ncarol\ndave,x\nerin,');
  expect(users.map(({ password }) => password)).toEqual(['secret word', '', 'x', '']);
  const results = [
    { username: 'bob', success: true },
    { username: 'carol', success: true, password: 'random' },
    { username: 'dave', success: false },
    { username: 'erin', success: true, password: 'other' },
  ];
  expect(withPasswords(results, users).map(({ password }) => password)).toEqual([
    'secret word',
    'random',
    undefined,
    'other',
  ]);
});

test('tag of an image is found', () => {
  expect(tagOf('docker.io/sipeed/picoclaw:1.2.3')).toBe('1.2.3');
  expect(tagOf('localhost:5000/agent')).toBe('localhost:5000/agent');
  expect(tagOf('a/b:1@sha256:00')).toBe('1');
});

test('length of time of the server is read', () => {
  expect(readHumanTime('1h 30m')).toBe(5400);
  expect(readHumanTime('soon 5x')).toBeUndefined();
  expect(longTime(readHumanTime('30days') ?? 0, 'en')).toBe('30 days');
});
