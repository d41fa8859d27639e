import { beforeEach, expect, test, vi } from 'vitest';

import { forgetCsrf } from '../../../api/client';
import { PullFollower } from './pull-follower';
import type { PullView } from './pull-view';

interface Call {
  last: string | null;
}

/** Answers requests for the pull with these streams, in their order. */
function streams(...texts: string[]): Call[] {
  const calls: Call[] = [];
  vi.stubGlobal('fetch', (url: string, init: RequestInit) => {
    if (url.endsWith('/csrf')) return Promise.resolve(new Response('{"csrf_token":"t"}'));
    calls.push({ last: new Headers(init.headers).get('Last-Event-ID') });
    const text = texts[calls.length - 1];
    if (text === undefined)
      return Promise.resolve(new Response('{"code":"invalid_parameter"}', { status: 400 }));
    return Promise.resolve(new Response(text));
  });
  return calls;
}

const event = (id: string, data: object): string => `id: ${id}\ndata: ${JSON.stringify(data)}\n\n`;

beforeEach(() => {
  vi.unstubAllGlobals();
  vi.useFakeTimers();
  forgetCsrf();
});

async function follow(last?: string): Promise<{ views: PullView[]; firsts: string[] }> {
  const seen = { views: [] as PullView[], firsts: [] as string[] };
  const follower = new PullFollower('echo:2', last, {
    show: (view) => seen.views.push(view),
    onFirst: (id) => seen.firsts.push(id),
  });
  const run = follower.run();
  await vi.advanceTimersByTimeAsync(60_000);
  await run;
  return seen;
}

test('lost stream goes on after its last event and requests nothing new', async () => {
  const calls = streams(
    event('t-status-1', { status: 'Waiting', percent: 0 }),
    event('t-log-7', { status: 'done', digest: '' }),
  );
  const { views, firsts } = await follow();
  expect(calls).toEqual([{ last: null }, { last: 't-status-1' }]);
  expect(firsts).toEqual(['t-status-1']);
  expect(views.at(-1)?.end).toEqual({ done: true });
});

test('refused request ends with its failure', async () => {
  streams();
  const { views } = await follow();
  expect(views.at(-1)?.end).toMatchObject({ failure: { code: 'invalid_parameter' } });
});
