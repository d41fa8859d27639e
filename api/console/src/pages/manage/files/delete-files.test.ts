import { expect, test } from 'vitest';

import { Failure } from '../../../api/failure';
import { withoutTrash } from '../../../api/queries/files';
import type { Schemas } from '../../../api/types';
import { deleteFiles, groupFailures } from './delete-files';

test('trash is never deleted, and a failure does not keep others from being deleted', async () => {
  const sent: string[] = [];
  const { deleted, ids, failed } = await deleteFiles(['a', '.trash', '.trash/1/b', 'gone', 'c'], (path) => {
    sent.push(path);
    if (path === 'gone') return Promise.reject(new Failure(404, 'not_found', ''));
    return Promise.resolve({ trash_id: `id-${path}` });
  });
  expect(sent).toEqual(['a', 'gone', 'c']);
  expect(deleted).toEqual(['a', 'c']);
  expect(ids).toEqual(['id-a', 'id-c']);
  expect(failed.map(({ path, failure }) => [path, failure.code])).toEqual([
    ['.trash', 'in_trash'],
    ['.trash/1/b', 'in_trash'],
    ['gone', 'not_found'],
  ]);
});

test('files that failed for the same reason are told together', () => {
  const failed = ['a', 'b', 'c'].map((path) => {
    const full = path !== 'b';
    return { path, failure: new Failure(full ? 507 : 404, full ? 'quota_exceeded' : 'not_found', '') };
  });
  expect(groupFailures(failed).map(({ paths, failure }) => [failure.code, ...paths])).toEqual([
    ['quota_exceeded', 'a', 'c'],
    ['not_found', 'b'],
  ]);
});

test('trash is left out of the listing of the workspace', () => {
  const entry = (path: string) => ({ name: path, rel_path: path });
  const files = { path: '', total: 2, entries: [entry('.trash'), entry('a')] } as Schemas['Files'];
  expect(withoutTrash(files)).toMatchObject({ total: 1, entries: [{ name: 'a' }] });
  const inner = { path: 'a', total: 1, entries: [entry('a/.trash')] } as Schemas['Files'];
  expect(withoutTrash(inner)).toBe(inner);
});
