import { expect, test } from 'vitest';

import { ownPath } from './prefix';
import { destination } from './signin/destination';

test('only paths of this site are taken', () => {
  expect(ownPath('/admin/users?page=2')).toBe('/admin/users?page=2');
  for (const bad of ['//evil', '/\\evil', 'https://evil', 'admin', '', '/\u0009/evil', '/a\\b', null]) {
    expect(ownPath(bad)).toBeUndefined();
  }
});

test('account goes to its own pages', () => {
  const user = { username: 'bob', role: 'user', initializing: false } as const;
  expect(destination(user, '')).toBe('/manage');
  expect(destination({ ...user, initializing: true }, '?next=/manage')).toBe('/initializing');
  expect(destination({ ...user, role: 'superadmin' }, '?next=%2Fadmin%2Fusers')).toBe('/admin/users');
  expect(destination({ ...user, role: 'superadmin' }, '?next=//evil')).toBe('/admin/dashboard');
});
