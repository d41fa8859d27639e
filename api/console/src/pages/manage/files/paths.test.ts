import { expect, test } from 'vitest';

import { cleanPath, copyName, extensionOf, isInTrash, isName, joinPath, nameOf, parentOf } from './paths';

test('paths are put together and taken apart', () => {
  expect(joinPath('', 'a')).toBe('a');
  expect(joinPath('a/b', 'c')).toBe('a/b/c');
  expect([parentOf('a/b/c'), parentOf('a')]).toEqual(['a/b', '']);
  expect([nameOf('a/b/c.txt'), nameOf('c')]).toEqual(['c.txt', 'c']);
  expect([extensionOf('A.TXT'), extensionOf('.env'), extensionOf('a.'), extensionOf('a')]).toEqual([
    'txt',
    '',
    '',
    '',
  ]);
});

test('path that leaves the workspace is not taken', () => {
  expect(cleanPath('/notes//./2026/')).toBe('notes/2026');
  expect(cleanPath('')).toBe('');
  expect(cleanPath('notes/../../etc')).toBeUndefined();
});

test('name is checked by its bytes', () => {
  expect(isName('日'.repeat(85))).toBe(true);
  for (const bad of ['', '.', '..', 'a/b', 'a\u0000', '日'.repeat(86)]) expect(isName(bad)).toBe(false);
});

test('copy keeps its extension', () => {
  const now = new Date('2026-05-11T11:46:40Z');
  expect(copyName('notes.tar.gz', now)).toBe('notes.tar (2026-05-11 11.46.40).gz');
  expect(copyName('.env', now)).toBe('.env (2026-05-11 11.46.40)');
  expect(copyName('A.TXT', now)).toBe('A (2026-05-11 11.46.40).TXT');
});

test('trash is told from folders of a similar name', () => {
  expect(['.trash', '.trash/2026/a', '.trashed', 'a/.trash', ''].map(isInTrash)).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
});
