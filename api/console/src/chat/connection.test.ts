import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { ChatConnection, type ConnectionStatus, type Refusal } from './connection';
import { FakeSocket, helloFrame } from '../testing/fake-socket';

let statuses: ConnectionStatus[];
let frames: string[];
let refusal: Refusal;
let asked: number;
let connection: ChatConnection;

beforeEach(() => {
  vi.useFakeTimers();
  FakeSocket.all = [];
  statuses = [];
  frames = [];
  refusal = 'retry';
  asked = 0;
  connection = new ChatConnection({
    url: () => 'ws://x/y',
    onFrame: ({ type }) => frames.push(type),
    onStatus: (status) => statuses.push(status),
    explain: () => {
      asked += 1;
      return Promise.resolve(refusal);
    },
    open: FakeSocket.make,
  });
  connection.start();
});

afterEach(() => {
  connection.close();
  vi.useRealTimers();
});

const open = (): FakeSocket => {
  FakeSocket.last.accept();
  FakeSocket.last.receive(helloFrame());
  return FakeSocket.last;
};

test('unknown and malformed frames are ignored', () => {
  const socket = open();
  socket.receive({ type: 'fortune' });
  socket.receive({ type: 'entry', n: 1, entry: { id: 1, kind: 'hologram' } });
  socket.receive({ type: 'entry', n: 1, entry: null });
  socket.onmessage?.({ data: '{' });
  socket.onmessage?.({ data: new ArrayBuffer(2) });
  socket.receive({ type: 'pong' });
  expect(frames).toEqual(['hello', 'pong']);
});

test('lost connection comes back after 1 s, then after longer', async () => {
  open().end();
  expect(statuses.at(-1)).toEqual({ open: false });
  await vi.advanceTimersByTimeAsync(999);
  expect(FakeSocket.all).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(FakeSocket.all).toHaveLength(2);
  FakeSocket.last.end();
  await vi.advanceTimersByTimeAsync(1999);
  expect(FakeSocket.all).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(FakeSocket.all).toHaveLength(3);
  expect(asked).toBe(1);
});

test('back-off grows to 30 s', async () => {
  for (let at = 0; at < 8; at += 1) {
    FakeSocket.last.end();
    await vi.advanceTimersByTimeAsync(30_000);
  }
  const { length } = FakeSocket.all;
  FakeSocket.last.end();
  await vi.advanceTimersByTimeAsync(29_999);
  expect(FakeSocket.all).toHaveLength(length);
  await vi.advanceTimersByTimeAsync(1);
  expect(FakeSocket.all).toHaveLength(length + 1);
});

test('network that is back connects at once', async () => {
  open().end();
  dispatchEvent(new Event('online'));
  expect(FakeSocket.all).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(5000);
  expect(FakeSocket.all).toHaveLength(2);
});

test('slow page connects again at once', () => {
  open().end(4408);
  expect(FakeSocket.all).toHaveLength(2);
});

test('service without memory is tried again slowly', async () => {
  const socket = open();
  socket.receive({ type: 'end', code: 'busy', message: '' });
  socket.end(1013);
  await vi.advanceTimersByTimeAsync(29_999);
  expect(FakeSocket.all).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(FakeSocket.all).toHaveLength(2);
});

test('silence after a ping gives the connection up', async () => {
  const socket = open();
  await vi.advanceTimersByTimeAsync(30_000);
  expect(socket.sent).toEqual([{ type: 'ping' }]);
  socket.receive({ type: 'pong' });
  await vi.advanceTimersByTimeAsync(30_000);
  expect(socket.sent).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(44_999);
  expect(FakeSocket.all).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(FakeSocket.all).toHaveLength(2);
  expect(statuses.at(-1)).toEqual({ open: false });
});

test.each([
  ['deleted', 4404],
  ['failed', 1011],
  ['chat_off', 4409],
])('end by %s halts until it is resumed', async (code, close) => {
  const socket = open();
  socket.receive({ type: 'end', code, message: '' });
  socket.end(close);
  expect(statuses.at(-1)).toEqual({ open: false, halted: code });
  dispatchEvent(new Event('online'));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(FakeSocket.all).toHaveLength(1);
  connection.resume();
  expect(FakeSocket.all).toHaveLength(2);
});

test('session that ended is renewed before the next attempt', async () => {
  open().end(4401);
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toBe(1);
  expect(FakeSocket.all).toHaveLength(2);
});

test('lasting refusal is said and tried again slowly', async () => {
  refusal = { slowly: 'held_elsewhere' };
  FakeSocket.last.end();
  await vi.advanceTimersByTimeAsync(29_999);
  expect(statuses.at(-1)).toEqual({ open: false, refused: 'held_elsewhere' });
  expect(FakeSocket.all).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(FakeSocket.all).toHaveLength(2);
});

test('refused upgrade of a missing conversation halts', async () => {
  refusal = 'deleted';
  FakeSocket.last.end();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(statuses.at(-1)).toEqual({ open: false, halted: 'deleted' });
  expect(FakeSocket.all).toHaveLength(1);
});

test('closed connection stays closed', async () => {
  open();
  connection.close();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(FakeSocket.all).toHaveLength(1);
  expect(connection.send({ type: 'stop' })).toBe(false);
});
