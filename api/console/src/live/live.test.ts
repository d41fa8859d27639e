import { QueryClient } from '@tanstack/react-query';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { type Channel, Election } from './election';
import { EventStream } from './event-stream';
import { StreamHub, type TabPort } from './hub';
import { Invalidator } from './invalidate';
import type { Change, LiveMessage } from './messages';
import { type Phase, PhaseClock } from './phase';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Channels of one browser: what one posts, all others receive. */
class Browser {
  private readonly all = new Set<Channel>();

  open(): Channel {
    const others = (own: Channel): Channel[] => [...this.all].filter((one) => one !== own);
    const channel: Channel = {
      onmessage: null,
      close: () => void this.all.delete(channel),
      postMessage: (data: unknown) => {
        for (const other of others(channel)) other.onmessage?.call(other as never, { data } as MessageEvent);
      },
    };
    this.all.add(channel);
    return channel;
  }
}

describe('election', () => {
  const tab = (browser: Browser, id: string) => {
    const channel = browser.open();
    const seen = { leads: false, messages: [] as unknown[], channel };
    const election = new Election(
      channel,
      id,
      (leads) => (seen.leads = leads),
      (message) => seen.messages.push(message),
    );
    return Object.assign(seen, { election });
  };
  const leaders = (...tabs: { leads: boolean }[]): number => tabs.filter(({ leads }) => leads).length;

  test('one of three tabs leads, and another one after it has left', () => {
    const browser = new Browser();
    const tabs = ['a', 'b', 'c'].map((id) => tab(browser, id));
    vi.advanceTimersByTime(5000);
    expect(leaders(...tabs)).toBe(1);
    const leader = tabs.find(({ leads }) => leads);
    const others = tabs.filter((one) => one !== leader);
    leader?.election.close();
    vi.advanceTimersByTime(1500);
    expect(leaders(...others)).toBe(1);
    for (const one of others) one.election.close();
  });

  test('tab whose leader is silent leads, and the leader yields when it comes back', () => {
    const browser = new Browser();
    const [first, second] = [tab(browser, 'a'), tab(browser, 'b')];
    vi.advanceTimersByTime(3000);
    const [leader, other] = first.leads ? [first, second] : [second, first];
    const { postMessage } = leader.channel;
    leader.channel.postMessage = () => undefined;
    vi.advanceTimersByTime(4000);
    expect(other.leads).toBe(true);
    leader.channel.postMessage = postMessage;
    vi.advanceTimersByTime(1000);
    expect([leader.leads, other.leads]).toEqual([false, true]);
    other.election.send('news');
    expect(leader.messages).toContain('news');
    first.election.close();
    second.election.close();
  });
});

describe('stream', () => {
  const change = { object: 'container/bob', status: 'running' } as Change;
  const body = (text: string): Response => new Response(text, { status: 200 });

  test('events are told and the last id is sent again', async () => {
    const told: LiveMessage[] = [];
    const ids: (string | null)[] = [];
    const fetcher = vi.fn((_: unknown, init?: RequestInit) => {
      ids.push(new Headers(init?.headers).get('Last-Event-ID'));
      if (ids.length > 1) return new Promise<Response>(() => undefined);
      const text = `retry:2000\n\nevent: open\nid: 7\ndata: {}\n\n: alive\n\nid: 8\ndata: ${JSON.stringify(change)}\n\nid: 9\nda`;
      return Promise.resolve(body(text));
    });
    const stream = new EventStream('/watch', (message) => told.push(message), fetcher as typeof fetch);
    stream.start();
    await vi.advanceTimersByTimeAsync(2000);
    expect(told).toEqual([{ type: 'connected' }, { type: 'change', change }, { type: 'lost' }]);
    expect(ids).toEqual([null, '8']);
    stream.stop();
  });

  test('ended session stops the attempts', async () => {
    const told: LiveMessage[] = [];
    const fetcher = vi.fn(() => Promise.resolve(new Response('', { status: 401 })));
    new EventStream('/watch', (message) => told.push(message), fetcher as typeof fetch).start();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(told).toEqual([{ type: 'ended' }]);
    expect(fetcher).toHaveBeenCalledTimes(1);
  });
});

describe('stream after a loss', () => {
  const open = 'event: open\nid: 7\ndata: {}\n\n';
  /** A connection that stays open and silent after its first event, until it is aborted. */
  const silent = (signal?: AbortSignal | null): Response => {
    const start = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
      controller.enqueue(new TextEncoder().encode(open));
      signal?.addEventListener('abort', () => controller.error(new Error('aborted')));
    };
    return new Response(new ReadableStream({ start }));
  };
  const begin = (answer: (at: number, init?: RequestInit) => Response) => {
    const told: LiveMessage['type'][] = [];
    const fetcher = vi.fn((_: unknown, init?: RequestInit) =>
      Promise.resolve(answer(fetcher.mock.calls.length, init)),
    );
    const stream = new EventStream('/watch', ({ type }) => told.push(type), fetcher as typeof fetch);
    stream.start();
    return { told, fetcher, stream };
  };

  test('stream connects again after errors, and everything is read again as no position is known', async () => {
    const { told, fetcher, stream } = begin((at, init) =>
      at <= 8 ? new Response('', { status: at % 2 === 0 ? 502 : 503 }) : silent(init?.signal),
    );
    await vi.advanceTimersByTimeAsync(130_000);
    expect(told.filter((type) => type !== 'lost')).toEqual(['connected', 'resync']);
    expect(fetcher).toHaveBeenCalledTimes(9);
    stream.stop();
  });

  test('waking connects at once, and replaces a connection that is silent since the sleep', async () => {
    const { told, fetcher, stream } = begin((at, init) =>
      at <= 5 ? new Response('', { status: 503 }) : silent(init?.signal),
    );
    await vi.advanceTimersByTimeAsync(20_000);
    expect(fetcher).toHaveBeenCalledTimes(5);
    stream.wake();
    await vi.advanceTimersByTimeAsync(0);
    expect(told.at(-2)).toBe('connected');
    stream.wake();
    await vi.advanceTimersByTimeAsync(1000);
    expect(fetcher).toHaveBeenCalledTimes(6);
    vi.setSystemTime(Date.now() + 3_600_000);
    stream.wake();
    await vi.advanceTimersByTimeAsync(0);
    expect(fetcher).toHaveBeenCalledTimes(7);
    expect(told.slice(-2)).toEqual(['lost', 'connected']);
    stream.stop();
  });

  test('refused account does not stop the attempts', async () => {
    const { told, fetcher, stream } = begin(() => new Response('', { status: 403 }));
    await vi.advanceTimersByTimeAsync(1100);
    expect(told.slice(0, 2)).toEqual(['refused', 'lost']);
    expect(fetcher).toHaveBeenCalledTimes(2);
    stream.stop();
  });
});

test('tab that slept is in the shared stream again and reads everything again', () => {
  const streams: { tell: (message: LiveMessage) => void; stopped: boolean }[] = [];
  const hub = new StreamHub((_, tell) => {
    const stream = { tell, stopped: false };
    streams.push(stream);
    return { start: () => undefined, wake: () => undefined, stop: () => (stream.stopped = true) };
  });
  const heard: unknown[] = [];
  const port: TabPort = { postMessage: (message: unknown) => heard.push(message) };
  hub.receive(port, { type: 'hello', url: '/watch' });
  streams[0]?.tell({ type: 'connected' });
  expect(heard).toEqual([{ type: 'lost' }, { type: 'connected' }]);
  vi.setSystemTime(Date.now() + 3_600_000);
  hub.sweep();
  expect(streams[0]?.stopped).toBe(true);
  hub.receive(port, { type: 'alive' });
  streams[1]?.tell({ type: 'connected' });
  expect(heard.slice(2)).toEqual([{ type: 'lost' }, { type: 'connected' }, { type: 'resync' }]);
});

test('short loss of the connection is not shown, a long one has its time', () => {
  const shown: Phase[] = [];
  const clock = new PhaseClock((phase) => shown.push(phase));
  clock.connected();
  clock.lost();
  vi.advanceTimersByTime(2900);
  clock.connected();
  expect(shown.map(({ name }) => name)).toEqual(['live']);
  const lostAt = new Date();
  clock.lost();
  vi.advanceTimersByTime(20_000);
  expect(shown.slice(1)).toEqual([{ name: 'reconnecting' }, { name: 'away', since: lostAt }]);
});

test('change of a container has its lists and its user read again', () => {
  const client = new QueryClient();
  const keys = [
    ['list', 'container', {}],
    ['list', 'user', {}],
    ['list', 'image', {}],
    ['object', 'user', 'bob'],
    ['object', 'user', 'carol'],
    ['session'],
  ];
  for (const key of keys) client.setQueryData(key, 1);
  const invalidator = new Invalidator(client);
  invalidator.add({ object: 'container/bob' } as Change);
  vi.advanceTimersByTime(1000);
  const stale = keys.filter((key) => client.getQueryState(key)?.isInvalidated === true);
  expect(stale).toEqual([keys[0], keys[1], keys[3]]);
});
