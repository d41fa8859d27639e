import { fireEvent, screen } from '@testing-library/react';
import { beforeEach, expect, test, vi } from 'vitest';

import { renderInConsole } from '../../testing/render';
import { CreateApiToken } from './CreateApiToken';

const { post } = vi.hoisted(() => ({ post: vi.fn() }));
vi.mock('../../api/client', () => ({ post, get: vi.fn() }));
beforeEach(() => post.mockReset());

test('created token is shown once, with a way to copy it', async () => {
  post.mockResolvedValue({ name: 'ci', role: 'read', token: 'agy_api_0011', expires_at: '' });
  renderInConsole(<CreateApiToken onClose={() => undefined} />);
  fireEvent.change(screen.getByLabelText('Name'), { target: { value: ' ci ' } });
  fireEvent.click(screen.getByRole('button', { name: 'Create API token' }));
  expect(await screen.findByText('agy_api_0011')).toBeTruthy();
  const body = { name: 'ci', role: 'read', expires_in: '90d' };
  expect(post.mock.calls).toEqual([['/api/admin/api-tokens/create', body]]);
  expect(screen.getByRole('button', { name: /Copy/ })).toBeTruthy();
});
