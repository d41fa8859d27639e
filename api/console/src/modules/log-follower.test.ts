import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { type ContainerLog, LogFollower, UNREAD } from './log-follower';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const stamped = (nanos: string, text: string): string => `data: 2026-11-12T09:12:00${nanos}Z ${text}\n\n`;
const END = 'event: end\ndata:\n\n';

/** Answers each request with the next text; one that lacks its end stays open until it is aborted. */
function serve(...texts: string[]) {
  const calls: { url: string; signal?: AbortSignal | null }[] = [];
  vi.stubGlobal('fetch', (url: string, { signal }: RequestInit) => {
    const text = texts[calls.length] ?? '';
    calls.push({ url, signal });
    const start = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
      controller.enqueue(new TextEncoder().encode(text));
      if (text.endsWith(END)) controller.close();
      signal?.addEventListener('abort', () => controller.error(new DOMException('', 'AbortError')));
    };
    return Promise.resolve(new Response(new ReadableStream({ start })));
  });
  return calls;
}

function follow() {
  const seen = { log: UNREAD };
  const show = (log: ContainerLog): void => void (seen.log = log);
  const follower = new LogFollower('/api/user/logs', {}, show, () => 'ended');
  const texts = (): string[] => seen.log.lines.map(({ text }) => text);
  return { follower, texts, seen };
}

test('stopped log goes on after its last line, and no line is there twice or lost', async () => {
  const first = stamped('.1', 'a') + stamped('.12', 'b') + stamped('.12', 'c');
  const calls = serve(first, first + stamped('.12', 'd') + stamped('.123', 'e'));
  const { follower, texts } = follow();
  follower.start();
  follower.start();
  await vi.advanceTimersByTimeAsync(200);
  expect(calls).toHaveLength(1);
  follower.stop();
  expect(calls[0]?.signal?.aborted).toBe(true);
  follower.start();
  await vi.advanceTimersByTimeAsync(200);
  expect(calls[1]?.url).toContain('since=2026-11-12T09%3A12%3A00.120000000Z');
  expect(texts()).toEqual(['a', 'b', 'c', 'd', 'e']);
  follower.close();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(calls).toHaveLength(2);
  expect(calls[1]?.signal?.aborted).toBe(true);
});

test('end of the container is marked once, and the next one is read by one reader', async () => {
  const calls = serve(stamped('.1', 'a') + END, stamped('.1', 'a') + END, stamped('.2', 'b'));
  const { follower, texts } = follow();
  follower.start();
  await vi.advanceTimersByTimeAsync(5000);
  expect(texts()).toEqual(['a', 'ended']);
  expect(calls).toHaveLength(2);
  follower.start();
  follower.start();
  await vi.advanceTimersByTimeAsync(200);
  expect(texts()).toEqual(['a', 'ended', 'b']);
  expect(calls).toHaveLength(3);
  follower.close();
});

test('silent connection is given up and opened again', async () => {
  const calls = serve(stamped('.1', 'a'), stamped('.1', 'a') + stamped('.2', 'b'));
  const { follower, texts, seen } = follow();
  follower.start();
  await vi.advanceTimersByTimeAsync(42_000);
  expect(calls).toHaveLength(2);
  expect(texts()).toEqual(['a', 'b']);
  expect(seen.log.failure).toBeUndefined();
  follower.close();
});

test('lines beyond the limit are dropped', async () => {
  const many = Array.from({ length: 20_500 }, (_, at) => `data: ${at}\n\n`).join('');
  serve(many);
  const { follower, texts } = follow();
  follower.start();
  await vi.advanceTimersByTimeAsync(1000);
  expect(texts()).toHaveLength(20_000);
  expect(texts().at(-1)).toBe('20499');
  follower.close();
});
