import { expect, test } from 'vitest';

import { Failure } from '../../../api/failure';
import { withoutTrash } from '../../../api/queries/files';
import type { Schemas } from '../../../api/types';
import { deleteFiles } from './delete-files';

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

test('trash is left out of the listing of the workspace', () => {
  const entry = (path: string) => ({ name: path, rel_path: path });
  const files = { path: '', total: 2, entries: [entry('.trash'), entry('a')] } as Schemas['Files'];
  expect(withoutTrash(files)).toMatchObject({ total: 1, entries: [{ name: 'a' }] });
  const inner = { path: 'a', total: 1, entries: [entry('a/.trash')] } as Schemas['Files'];
  expect(withoutTrash(inner)).toBe(inner);
});
