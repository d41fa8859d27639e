import { fireEvent, screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';

import { Failure } from '../../../api/failure';
import type { Schemas } from '../../../api/types';
import { renderInConsole } from '../../../testing/render';
import { SaveConflict } from './SaveConflict';
import type { TextSave } from './useTextSave';

const file = { path: 'a.txt', filename: 'a.txt', content: 'old', etag: '0' } as Schemas['TextFile'];
const saveOf = (parts: Partial<TextSave>): TextSave => ({
  text: 'mine',
  latest: () => 'mine',
  dirty: true,
  saving: false,
  conflict: true,
  change: () => undefined,
  save: () => Promise.resolve(),
  overwrite: () => Promise.resolve(true),
  keepBoth: () => Promise.resolve('b.txt'),
  leaveConflict: () => undefined,
  ...parts,
});
const show = (save: TextSave): void => {
  renderInConsole(
    <SaveConflict file={file} save={save} onMerged={() => undefined} onKept={() => undefined} />,
  );
};
const overwriteButton = () => screen.findByRole<HTMLButtonElement>('button', { name: 'Overwrite' });

/** Answers every reading of the file with another state. */
function stubFile(): void {
  let state = 0;
  vi.stubGlobal('fetch', (url: string) => {
    const body = url.includes('/edit') ? { ...file, etag: String(++state) } : { entries: [] };
    return Promise.resolve(new Response(JSON.stringify(body)));
  });
}

test('file that changed once more is read again and may be overwritten then', async () => {
  stubFile();
  const overwrite = vi.fn((etag: string) => Promise.resolve(etag === '2'));
  show(saveOf({ overwrite }));
  await waitFor(async () => expect((await overwriteButton()).disabled).toBe(false));
  fireEvent.click(await overwriteButton());
  expect((await screen.findByRole('alert')).textContent).toContain('changed once more');
  fireEvent.click(await overwriteButton());
  await waitFor(() => expect(overwrite.mock.calls).toEqual([['1'], ['2']]));
});

test('failure to save is shown in the dialog', async () => {
  stubFile();
  show(saveOf({ failure: new Failure(507, 'disk_full', '') }));
  expect(await screen.findByText(/disk of the server is full/)).toBeTruthy();
});
