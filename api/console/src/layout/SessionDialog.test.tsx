import { fireEvent, screen, waitFor } from '@testing-library/react';
import { beforeEach, expect, test, vi } from 'vitest';

import { noteAccount, otherAccount } from '../api/account';
import { get } from '../api/client';
import { sessionHasEnded, sessionRenewed } from '../api/session';
import { DialogFrame } from '../components/DialogFrame';
import { renderInConsole } from '../testing/render';
import { SessionDialog } from './SessionDialog';

const provider = (has_browser: boolean) => ({
  auth_mode: has_browser ? 'oidc' : 'local',
  provider: { name: 'x', display_name: 'Example ID', has_browser, has_password: !has_browser },
});

/** Answers by path; what is absent has no session. */
function serve(answers: Record<string, () => Response>): void {
  vi.stubGlobal('fetch', (url: string) => {
    const none = (): Response => Response.json({ code: 'not_signed_in' }, { status: 401 });
    return Promise.resolve((answers[url] ?? none)());
  });
}

beforeEach(() => {
  sessionRenewed();
  noteAccount('alice');
});

test('sign-in by a provider goes on as soon as the session is there', async () => {
  const answers: Record<string, () => Response> = {
    '/api/login/mode': () => Response.json(provider(true)),
  };
  serve(answers);
  renderInConsole(<SessionDialog />);
  const waiting = get('/api/x');
  const link = await screen.findByRole('link', { name: /Example ID/ });
  expect(link.getAttribute('href')).toBe('/api/login/oidc?next=%2Fmanage');
  fireEvent.click(screen.getByRole('button', { name: 'I have signed in' }));
  expect(await screen.findByText('You are not signed in yet.')).toBeTruthy();
  answers['/api/user/info'] = () => Response.json({ username: 'alice', role: 'user' });
  answers['/api/x'] = () => Response.json({ x: 1 });
  fireEvent.click(screen.getByRole('button', { name: 'I have signed in' }));
  expect(await waiting).toEqual({ x: 1 });
});

test('way to sign in that could not be asked is asked again', async () => {
  const answers: Record<string, () => Response> = {
    '/api/login/mode': () => Response.json({ code: 'internal' }, { status: 500 }),
  };
  serve(answers);
  renderInConsole(<SessionDialog />);
  void get('/api/x').catch(() => undefined);
  const again = await screen.findByRole('button', { name: 'Try again' });
  answers['/api/login/mode'] = () => Response.json(provider(false));
  fireEvent.click(again);
  expect(await screen.findByLabelText<HTMLInputElement>('User name')).toMatchObject({ value: 'alice' });
});

test('sign-in of another account closes the page and sends nothing of it', async () => {
  const sent = vi.fn(() => Response.json({}));
  const answers: Record<string, () => Response> = {
    '/api/login/mode': () => Response.json(provider(true)),
  };
  serve(answers);
  renderInConsole(<SessionDialog />);
  void get('/api/x').catch(() => undefined);
  await screen.findByRole('link', { name: /Example ID/ });
  answers['/api/user/info'] = () => Response.json({ username: 'bob', role: 'user' });
  answers['/api/x'] = sent;
  fireEvent.click(screen.getByRole('button', { name: 'I have signed in' }));
  await waitFor(() => expect(otherAccount()).toBe('bob'));
  expect(sessionHasEnded()).toBe(true);
  expect(sent).not.toHaveBeenCalled();
});

test('escape leaves the dialog beneath open', async () => {
  serve({ '/api/login/mode': () => Response.json(provider(false)) });
  const close = vi.fn();
  renderInConsole(
    <>
      <DialogFrame opened title="Beneath" onClose={close}>
        A form
      </DialogFrame>
      <SessionDialog />
    </>,
  );
  fireEvent.keyDown(document.body, { key: 'Escape' });
  expect(close).toHaveBeenCalledTimes(1);
  void get('/api/x').catch(() => undefined);
  await screen.findByLabelText('User name');
  fireEvent.keyDown(document.body, { key: 'Escape' });
  expect(close).toHaveBeenCalledTimes(1);
});
