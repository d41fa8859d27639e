import { fireEvent, screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';

import { Failure } from '../../../api/failure';
import { renderInConsole } from '../../../testing/render';
import { MoveDialog } from './MoveDialog';
import type { FileActions } from './useFileActions';

test('file that cannot be moved is named with the remedy, and the others are moved once', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve(new Response('{"path":"","entries":[],"total":0}')));
  const refused = new Failure(409, 'already_exists', '"b" exists');
  const move = vi.fn((from: string) => (from === 'old/b' ? Promise.reject(refused) : Promise.resolve()));
  const onClose = vi.fn();
  renderInConsole(
    <MoveDialog
      paths={['old/a', 'old/b', 'old/c']}
      actions={{ move } as unknown as FileActions}
      onClose={onClose}
    />,
  );
  fireEvent.click(await screen.findByRole('button', { name: 'Up' }));
  fireEvent.click(screen.getByRole('button', { name: 'Move to Workspace' }));
  const alert = await screen.findByRole('alert');
  expect(alert.textContent).toContain('b was not moved to Workspace');
  expect(alert.textContent).toContain('"b" exists');
  expect(screen.getByText(/Choose another folder/)).toBeTruthy();
  expect(onClose).not.toHaveBeenCalled();
  fireEvent.click(screen.getByRole('button', { name: 'Move to Workspace' }));
  await waitFor(() => expect(move).toHaveBeenCalledTimes(4));
});
