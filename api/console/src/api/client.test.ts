import { beforeEach, describe, expect, test, vi } from 'vitest';

import { forgetCsrf, get, post, queryText } from './client';
import { Failure } from './failure';
import { provideSessionDialog, sessionHasEnded, sessionRenewed } from './session';

interface Answer {
  status?: number;
  body?: unknown;
  headers?: Record<string, string>;
}

/** Answers requests in their order and records them. */
function answer(...answers: Answer[]) {
  const calls: { url: string; init: RequestInit }[] = [];
  vi.stubGlobal('fetch', (url: string, init: RequestInit) => {
    calls.push({ url, init });
    const { status = 200, body = {}, headers = {} } = answers[calls.length - 1] ?? { status: 599 };
    return Promise.resolve(new Response(JSON.stringify(body), { status, headers }));
  });
  return calls;
}

const token = (csrf_token: string): Answer => ({ body: { csrf_token } });
const refused = (status: number, code: string, headers = {}): Answer => ({
  status,
  body: { success: false, error: `sentence of ${code}`, code, field: 'name' },
  headers,
});

beforeEach(() => {
  vi.unstubAllGlobals();
  forgetCsrf();
});

describe('post', () => {
  test('token is fetched once and renewed once when it is too old', async () => {
    const calls = answer(token('old'), {}, refused(403, 'csrf_invalid'), token('new'), { body: { done: 1 } });
    await post('/api/first', { a: 1 });
    expect(await post('/api/second')).toEqual({ done: 1 });
    expect(calls.map(({ url }) => url)).toEqual([
      '/api/csrf',
      '/api/first',
      '/api/second',
      '/api/csrf',
      '/api/second',
    ]);
    expect(new Headers(calls[4]?.init.headers).get('X-CSRF-Token')).toBe('new');
    expect(calls[1]?.init.body).toBe('{"a":1}');
  });

  test('token that is refused twice is a failure', async () => {
    answer(token('a'), refused(403, 'csrf_invalid'), token('b'), refused(403, 'csrf_invalid'));
    await expect(post('/api/x')).rejects.toMatchObject({ code: 'csrf_invalid', status: 403 });
  });
});

describe('failures', () => {
  test('refusal has code, sentence, time to wait and details', async () => {
    answer(refused(429, 'too_many_attempts', { 'Retry-After': '42', 'X-Request-Id': 'r1' }));
    const failure = await get('/api/x').catch((thrown: unknown) => thrown as Failure);
    expect(failure).toBeInstanceOf(Failure);
    expect(failure).toMatchObject({
      status: 429,
      code: 'too_many_attempts',
      message: 'sentence of too_many_attempts',
      retryAfter: 42,
      details: { field: 'name' },
      requestId: 'r1',
    });
  });

  test('lost connection and foreign answers are failures too', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('failed to fetch')));
    await expect(get('/api/x')).rejects.toMatchObject({ status: 0, code: 'network' });
    vi.stubGlobal('fetch', () => Promise.resolve(new Response('<h1>bad gateway</h1>', { status: 502 })));
    await expect(get('/api/x')).rejects.toMatchObject({ status: 502, code: 'unexpected' });
  });
});

describe('session that ended', () => {
  test('request waits for the new session and is made again', async () => {
    const end = provideSessionDialog();
    answer(refused(401, 'not_signed_in'), { body: { name: 'bob' } });
    const waiting = get('/api/x');
    await vi.waitFor(() => expect(sessionHasEnded()).toBe(true));
    sessionRenewed();
    expect(await waiting).toEqual({ name: 'bob' });
    end();
  });

  test('without a dialog it is a failure', async () => {
    answer(refused(401, 'not_signed_in'));
    await expect(get('/api/x')).rejects.toMatchObject({ status: 401 });
  });
});

test('query leaves out what is empty and repeats lists', () => {
  expect(queryText({ a: 'x y', b: ['1', '2'], c: undefined, d: '', e: null, f: 0 })).toBe(
    '?a=x+y&b=1&b=2&f=0',
  );
  expect(queryText({})).toBe('');
});
