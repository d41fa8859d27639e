import { fireEvent, screen } from '@testing-library/react';
import { expect, test } from 'vitest';

import { renderInConsole } from '../testing/render';
import { Copy } from './Copy';

test('text is copied from a selected field', async () => {
  let copied = '';
  document.execCommand = () => {
    copied = (document.activeElement as HTMLTextAreaElement).value;
    return true;
  };
  renderInConsole(<Copy text="agentyard get users" />);
  fireEvent.click(screen.getByRole('button'));
  expect(await screen.findByRole('button', { name: 'Copied' })).toBeTruthy();
  expect(copied).toBe('agentyard get users');
  expect(screen.queryByRole('textbox')).toBeNull();
});

test('refused copy says so and shows the text selected', async () => {
  document.execCommand = () => false;
  renderInConsole(<Copy text="secret text" />);
  fireEvent.click(screen.getByRole('button'));
  const field = await screen.findByRole<HTMLTextAreaElement>('textbox');
  expect(field.value).toBe('secret text');
  expect(document.activeElement).toBe(field);
  expect(screen.getByText(/Copying failed/)).toBeTruthy();
});
