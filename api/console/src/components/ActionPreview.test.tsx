import { fireEvent, screen } from '@testing-library/react';
import { expect, test, vi } from 'vitest';

import { Failure } from '../api/failure';
import { renderInConsole } from '../testing/render';
import { ActionPreview } from './ActionPreview';

test('preview is made anew when it no longer holds', async () => {
  const preview = vi.fn(() => Promise.resolve(preview.mock.calls.length));
  const act = vi.fn(() => Promise.reject(new Failure(409, 'changed_meanwhile', '')));
  renderInConsole(
    <ActionPreview
      opened
      title="Stop"
      previewKey={['test']}
      preview={preview}
      verb={(count) => `Stop ${count}`}
      act={act}
      onClose={() => undefined}
    >
      {(count) => <p>{count} agents stop</p>}
    </ActionPreview>,
  );
  fireEvent.click(await screen.findByRole('button', { name: 'Stop 1' }));
  expect(await screen.findByText('2 agents stop')).toBeTruthy();
  expect(screen.getByRole('alert').textContent).toContain('has changed since');
  expect(preview).toHaveBeenCalledTimes(2);
});
