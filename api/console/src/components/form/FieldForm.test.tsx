import { fireEvent, screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';

import { Failure } from '../../api/failure';
import { renderInConsole } from '../../testing/render';
import type { FormField } from './fields';
import { FieldForm } from './FieldForm';

const FIELDS: FormField[] = [
  { key: 'client_id', label: 'Client ID', type: 'text', set: true, value: 'me' },
  { key: 'secret', label: 'Secret', type: 'password', secret: true, set: true },
  { key: 'timeout', label: 'Timeout', type: 'integer', set: false },
  { key: 'allow', label: 'Allowed', type: 'string_list', set: false },
];

const button = (name: string): HTMLElement => screen.getByRole('button', { name });
const type = (label: string, value: string): void =>
  void fireEvent.change(screen.getByLabelText(label), { target: { value } });

test('only what was changed is sent, and secrets that were not touched are absent', async () => {
  const onSave = vi.fn(() => Promise.resolve());
  renderInConsole(<FieldForm name="one" fields={FIELDS} onSave={onSave} />);
  expect(screen.queryByLabelText('Secret', { selector: 'input' })).toBeNull();
  type('Timeout', '30');
  type('Allowed', 'a\n\n b ');
  fireEvent.click(button('Save'));
  await waitFor(() => expect(onSave).toHaveBeenCalledWith({ timeout: 30, allow: ['a', 'b'] }));
});

test('secret is replaced or removed, and is no part of what a reload brings back', async () => {
  const onSave = vi.fn(() => Promise.resolve());
  renderInConsole(<FieldForm name="two" fields={FIELDS} onSave={onSave} />);
  fireEvent.click(button('Replace'));
  fireEvent.change(screen.getByLabelText('Secret', { selector: 'input' }), { target: { value: 'hunter2' } });
  type('Client ID', 'you');
  expect(JSON.stringify({ ...sessionStorage })).toContain('you');
  expect(JSON.stringify({ ...sessionStorage })).not.toContain('hunter2');
  fireEvent.click(button('Save'));
  await waitFor(() => expect(onSave).toHaveBeenCalledWith({ client_id: 'you', secret: 'hunter2' }));
  fireEvent.click(await screen.findByRole('button', { name: 'Remove' }));
  fireEvent.click(button('Save'));
  await waitFor(() => expect(onSave).toHaveBeenLastCalledWith({ secret: null }));
});

test('refused values stand at their fields and what was typed stays', async () => {
  const problems = [{ pointer: '/values/timeout', message: 'must be below 600' }];
  const refused = new Failure(422, 'invalid_values', 'refused', undefined, { problems });
  renderInConsole(<FieldForm name="three" fields={FIELDS} onSave={() => Promise.reject(refused)} />);
  type('Timeout', '900');
  fireEvent.click(button('Save'));
  expect(await screen.findByText('must be below 600')).toBeTruthy();
  expect(screen.getByLabelText<HTMLInputElement>('Timeout').value).toBe('900');
});

test('nothing can be typed while it is saved', async () => {
  let end: () => void = () => undefined;
  const onSave = () => new Promise<void>((resolve) => (end = resolve));
  renderInConsole(<FieldForm name="four" fields={FIELDS} onSave={onSave} />);
  const locked = (): boolean => screen.getByLabelText('Timeout').closest('fieldset')?.disabled === true;
  type('Timeout', '30');
  expect(locked()).toBe(false);
  fireEvent.click(button('Save'));
  expect(locked()).toBe(true);
  end();
  await waitFor(() => expect(locked()).toBe(false));
});
