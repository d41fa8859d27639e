import { fireEvent, screen } from '@testing-library/react';
import { expect, test, vi } from 'vitest';

import { renderInConsole } from '../../../testing/render';
import { MessageField } from './MessageField';

function setUp() {
  const onSend = vi.fn();
  const onFiles = vi.fn();
  const ref = { current: null };
  const common = { ref, text: 'hi', invalid: false, hintId: 'x', onText: () => undefined };
  renderInConsole(<MessageField {...common} onSend={onSend} onFiles={onFiles} />);
  return { field: screen.getByRole('textbox'), onSend, onFiles };
}

test('enter sends, shift-enter does not', () => {
  const { field, onSend } = setUp();
  fireEvent.keyDown(field, { key: 'Enter', shiftKey: true });
  expect(onSend).not.toHaveBeenCalled();
  fireEvent.keyDown(field, { key: 'Enter' });
  expect(onSend).toHaveBeenCalledTimes(1);
});

test.each([{ isComposing: true }, { keyCode: 229 }])('enter of an input method does nothing (%o)', (init) => {
  const { field, onSend } = setUp();
  fireEvent.keyDown(field, { key: 'Enter', ...init });
  expect(onSend).not.toHaveBeenCalled();
});
