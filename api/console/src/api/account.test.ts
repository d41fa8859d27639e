import { beforeEach, expect, test, vi } from 'vitest';

beforeEach(() => {
  vi.resetModules();
  vi.unstubAllGlobals();
});

/** A tab of the browser: its own copies of the modules. */
async function openTab() {
  vi.resetModules();
  const account = await import('./account');
  const client = await import('./client');
  const drafts = await import('../modules/drafts');
  return { ...account, ...client, ...drafts };
}

/** Answers as the session of `name` does; its CSRF token is valid for no other. */
function signIn(name: string): string[] {
  const sent: string[] = [];
  vi.stubGlobal('fetch', (url: string, init: RequestInit) => {
    sent.push(url);
    const token = new Headers(init.headers).get('X-CSRF-Token');
    if (url === '/api/csrf') return Promise.resolve(Response.json({ csrf_token: name }));
    if (url === '/api/user/info') return Promise.resolve(Response.json({ username: name }));
    return Promise.resolve(
      token === name ? Response.json({}) : Response.json({ code: 'csrf_invalid' }, { status: 403 }),
    );
  });
  return sent;
}

test('what was typed for one account is never sent as another', async () => {
  const { noteAccount, otherAccount, post } = await openTab();
  noteAccount('alice');
  signIn('alice');
  await post('/api/user/x');
  const sent = signIn('bob');
  await expect(post('/api/user/x')).rejects.toMatchObject({ code: 'account_changed' });
  expect(sent).toEqual(['/api/user/x', '/api/csrf', '/api/user/info']);
  expect(otherAccount()).toBe('bob');
  await expect(post('/api/user/x')).rejects.toMatchObject({ code: 'account_changed' });
  expect(sent.filter((url) => url === '/api/user/x')).toHaveLength(1);
});

test('tabs hear of another account, and of a sign-out of their own', async () => {
  const first = await openTab();
  first.noteAccount('alice');
  const second = await openTab();
  const news = vi.fn();
  first.onOwnAccount(news);
  second.noteAccount('alice');
  await vi.waitFor(() => expect(news).toHaveBeenCalledWith({ signedIn: 'alice' }));
  second.tellTabs({ signedOut: 'alice' });
  await vi.waitFor(() => expect(news).toHaveBeenCalledWith({ signedOut: 'alice' }));
  const third = await openTab();
  third.noteAccount('bob');
  await vi.waitFor(() => expect(first.otherAccount()).toBe('bob'));
});

test('drafts belong to their account and are forgotten when it signs out', async () => {
  const alice = await openTab();
  alice.noteAccount('alice');
  alice.storeDraft('form x', { a: 1 });
  const bob = await openTab();
  bob.noteAccount('bob');
  expect(bob.readDraft('form x')).toBeUndefined();
  bob.storeDraft('form x', { b: 2 });
  bob.forgetDrafts();
  expect(bob.readDraft('form x')).toBeUndefined();
  expect(alice.readDraft('form x')).toEqual({ a: 1 });
});
