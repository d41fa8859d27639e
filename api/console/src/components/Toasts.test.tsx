import { act, fireEvent, screen, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { expect, test, vi } from 'vitest';

import { Failure } from '../api/failure';
import { renderInConsole } from '../testing/render';
import { useToasts } from './toast-store';
import { Toasts } from './Toasts';

function Maker(): ReactNode {
  const toasts = useToasts();
  const fail = (): void => toasts.fail('bob was not stopped', new Failure(409, 'busy', ''));
  return (
    <>
      <button onClick={fail}>fail</button>
      <button onClick={() => toasts.done('done')}>done</button>
    </>
  );
}

const press = (name: string): void => void fireEvent.click(screen.getByRole('button', { name }));

test('failure stays, whatever follows it', () => {
  vi.useFakeTimers();
  renderInConsole(
    <Toasts>
      <Maker />
    </Toasts>,
  );
  press('fail');
  for (let count = 0; count < 9; count += 1) press('done');
  expect(screen.getAllByRole('status')).toHaveLength(4);
  act(() => void vi.advanceTimersByTime(600_000));
  expect(screen.queryAllByRole('status')).toHaveLength(0);
  expect(screen.getByRole('alert').textContent).toContain('bob was not stopped');
  vi.useRealTimers();
});

test('failure is closed by the keyboard, and the focus goes back', async () => {
  renderInConsole(
    <Toasts>
      <Maker />
    </Toasts>,
  );
  const maker = screen.getByRole('button', { name: 'fail' });
  press('fail');
  press('fail');
  maker.focus();
  const [first] = screen.getAllByRole('button', { name: 'Close message' });
  first?.focus();
  fireEvent.keyDown(first as HTMLElement, { key: 'Escape' });
  await waitFor(() => expect(document.activeElement?.closest('[role=alert]')).toBeTruthy());
  fireEvent.keyDown(document.activeElement as Element, { key: 'Escape' });
  await waitFor(() => expect(document.activeElement).toBe(maker));
  expect(screen.queryByRole('alert')).toBeNull();
});
