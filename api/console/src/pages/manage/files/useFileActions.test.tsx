import { fireEvent, screen, waitFor } from '@testing-library/react';
import { type ReactNode, useState } from 'react';
import { expect, test, vi } from 'vitest';

import { renderInConsole } from '../../../testing/render';
import type { FailedFiles } from './delete-files';
import { NoSpaceDialog } from './NoSpaceDialog';
import { useFileActions } from './useFileActions';

vi.mock('@tanstack/react-router', () => ({
  Link: ({ to, children }: { to: string; children: ReactNode }) => <a href={to}>{children}</a>,
}));

function Deleter(): ReactNode {
  const actions = useFileActions();
  const [files, setFiles] = useState<FailedFiles>();
  return (
    <>
      <button type="button" onClick={() => void actions.remove(['a.txt']).then(setFiles)}>
        Delete
      </button>
      {files && <NoSpaceDialog files={files} actions={actions} onClose={() => setFiles(undefined)} />}
    </>
  );
}

test('file without space in the trash is deleted for ever only after it was asked', async () => {
  const sent: unknown[] = [];
  vi.stubGlobal('fetch', (url: string, { body }: { body?: string }) => {
    if (url.includes('/csrf')) return Promise.resolve(new Response('{"csrf_token":"x"}'));
    const asked = JSON.parse(body ?? '{}') as { permanent?: boolean };
    sent.push(asked);
    const full = asked.permanent !== true;
    const answer = full ? { code: 'quota_exceeded', error: 'full' } : { trash_id: null };
    return Promise.resolve(new Response(JSON.stringify(answer), { status: full ? 507 : 200 }));
  });
  renderInConsole(<Deleter />);
  fireEvent.click(screen.getByRole('button', { name: 'Delete' }));
  const confirm = await screen.findByRole('button', { name: 'Delete for ever' });
  expect(screen.getByRole('link').getAttribute('href')).toBe('/manage/files/trash');
  expect(sent).toEqual([{ path: 'a.txt' }]);
  fireEvent.click(confirm);
  await waitFor(() => expect(sent).toEqual([{ path: 'a.txt' }, { path: 'a.txt', permanent: true }]));
});
