import { expect, test, vi } from 'vitest';

import { Failure } from '../../../api/failure';
import { Arrivals } from './arrivals';
import type { SendOptions } from './send-file';
import { MOST_BYTES, planUpload, type PlannedFile } from './upload-plan';
import { UploadQueue } from './upload-queue';

const planned = (name: string, size = 4): PlannedFile => {
  const file = new File(['abcd'], name);
  Object.defineProperty(file, 'size', { value: size });
  return { folder: '', name, file };
};
const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

/** A queue whose files are sent when the test says so. */
function queueOf(names: string[]) {
  const sent = new Map<string, { options: SendOptions; end: (failure?: Failure) => void }>();
  const send = ({ name }: PlannedFile, options: SendOptions): Promise<void> =>
    new Promise((resolve, reject) => {
      options.signal.addEventListener('abort', () => reject(new DOMException('', 'AbortError')));
      sent.set(name, { options, end: (failure) => (failure ? reject(failure) : resolve()) });
    });
  const queue = new UploadQueue(send);
  queue.add(names.map((name) => ({ planned: planned(name), overwrite: false })));
  const states = (): string[] => queue.list().map(({ state }) => state);
  return { queue, sent, states };
}

test('three files are sent at once, the next when one has ended', async () => {
  const { sent, states } = queueOf(['a', 'b', 'c', 'd']);
  expect(states()).toEqual(['sending', 'sending', 'sending', 'waiting']);
  sent.get('b')?.end();
  await settle();
  expect(states()).toEqual(['sending', 'done', 'sending', 'sending']);
});

test('cancelled file ends and makes room', async () => {
  const { queue, sent, states } = queueOf(['a', 'b', 'c', 'd']);
  queue.cancel(1);
  await settle();
  expect(sent.get('a')?.options.signal.aborted).toBe(true);
  expect(states()).toEqual(['cancelled', 'sending', 'sending', 'sending']);
  queue.cancelAll();
  await settle();
  expect(states()).toEqual(['cancelled', 'cancelled', 'cancelled', 'cancelled']);
  queue.clear();
  expect(queue.list()).toEqual([]);
});

test('failed file is sent again, in place of the one that is there when asked', async () => {
  const { queue, sent, states } = queueOf(['a']);
  sent.get('a')?.end(new Failure(409, 'already_exists', ''));
  await settle();
  expect(states()).toEqual(['failed']);
  queue.retry(1, true);
  expect(sent.get('a')?.options.overwrite).toBe(true);
  sent.get('a')?.end();
  await settle();
  expect(states()).toEqual(['done']);
});

test('file that is too large is not sent', () => {
  const { queue, sent } = queueOf([]);
  queue.add([{ planned: planned('big', MOST_BYTES + 1), overwrite: false }]);
  expect(queue.list()[0]?.failure?.code).toBe('too_large');
  expect(sent.size).toBe(0);
});

test('folders are made before what lies in them', () => {
  const file = new File([], 'x');
  const picked = { files: [{ path: 'a/b/x.txt', file }], folders: ['a/empty'] };
  const plan = planUpload(picked, 'notes');
  expect(plan.folders).toEqual(['notes/a', 'notes/a/empty', 'notes/a/b']);
  expect(plan.files).toEqual([{ folder: 'notes/a/b', name: 'x.txt', file }]);
});

test('listeners are told of progress at most every 100 ms, and of the last change', () => {
  vi.useFakeTimers();
  const { queue, sent } = queueOf(['a']);
  const listener = vi.fn();
  queue.subscribe(listener);
  for (let bytes = 0; bytes <= 4; bytes += 1) sent.get('a')?.options.onProgress(bytes);
  expect(listener.mock.calls.length).toBeLessThanOrEqual(1);
  vi.advanceTimersByTime(100);
  expect(listener.mock.calls.length).toBeLessThanOrEqual(2);
  expect(queue.list()[0]?.sent).toBe(4);
  vi.useRealTimers();
});

test('file that has arrived is let go, one that failed is kept for another attempt', async () => {
  const { queue, sent } = queueOf(['a', 'b']);
  sent.get('a')?.end();
  sent.get('b')?.end(new Failure(503, 'busy', ''));
  await settle();
  expect(queue.list().map(({ planned: file }) => file?.name)).toEqual([undefined, 'b']);
  expect(queue.list().map(({ size }) => size)).toEqual([4, 4]);
});

test('folder is read every 2 s while files arrive, and at the end', () => {
  vi.useFakeTimers();
  const refresh = vi.fn();
  const arrivals = new Arrivals(refresh);
  for (let file = 0; file < 40; file += 1) {
    arrivals.note(false);
    vi.advanceTimersByTime(100);
  }
  expect(refresh).toHaveBeenCalledTimes(2);
  arrivals.note(false);
  arrivals.note(true);
  vi.advanceTimersByTime(5000);
  expect(refresh).toHaveBeenCalledTimes(3);
  vi.useRealTimers();
});
