import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { FakeSocket, helloFrame } from '../testing/fake-socket';
import { readOutbox } from './outbox';
import { ChatSession } from './session';

const at = '2026-05-11T09:00:00Z';
let session: ChatSession;

beforeEach(() => {
  vi.useFakeTimers();
  FakeSocket.all = [];
  session = new ChatSession('c1', { open: FakeSocket.make });
  session.start();
});

afterEach(() => {
  session.close();
  vi.useRealTimers();
});

const open = (parts = {}): FakeSocket => {
  FakeSocket.last.accept();
  FakeSocket.last.receive(helloFrame(parts));
  return FakeSocket.last;
};
const userEntry = (id: number, client_id: unknown) => ({
  type: 'entry',
  n: 10 + id,
  entry: { id, at, kind: 'user', text: 'hi', client_id, attachments: [], status: 'sent' },
});
const settle = () => vi.advanceTimersByTimeAsync(100);

test('message is pending until its entry arrives', async () => {
  const socket = open();
  session.send('hi', []);
  expect(session.snapshot().pending).toHaveLength(1);
  const { client_id } = socket.sent[0] ?? {};
  expect(client_id).toMatch(/^[A-Za-z0-9-]{1,64}$/);
  socket.receive(userEntry(1, client_id));
  await settle();
  expect(session.snapshot().pending).toEqual([]);
  expect(readOutbox('c1')).toEqual([]);
});

test('unacknowledged message is sent again with the same id after a resume', async () => {
  const socket = open();
  session.send('hi', [{ path: 'uploads/a.txt', name: 'a.txt', size: 3, picture: false }]);
  socket.end();
  await vi.advanceTimersByTimeAsync(1000);
  expect(FakeSocket.last.url).toContain('epoch=e1&after=0');
  const again = open({ reset: false });
  expect(again.sent).toEqual(socket.sent);
  expect(again.sent[0]?.attachments).toEqual([{ path: 'uploads/a.txt', picture: false }]);
});

test('message survives a reload', () => {
  session.send('hi', []);
  session.close();
  const next = new ChatSession('c1', { open: FakeSocket.make });
  next.start();
  const socket = open();
  expect(socket.sent).toMatchObject([{ type: 'send', text: 'hi' }]);
  next.close();
});

test('refused message is kept with the reason and sent again on demand', async () => {
  const socket = open();
  session.send('hi', []);
  const client_id = String(socket.sent[0]?.client_id);
  socket.receive({ type: 'refused', client_id, code: 'too_many_waiting', message: 'ten wait' });
  await settle();
  expect(session.snapshot().pending[0]?.refused?.code).toBe('too_many_waiting');
  session.sendAgain(client_id);
  expect(socket.sent).toHaveLength(2);
  expect(session.snapshot().pending[0]?.refused).toBeUndefined();
  session.discard(client_id);
  expect(session.snapshot().pending).toEqual([]);
});

test('loss is shown after 2 s only', async () => {
  open();
  await settle();
  FakeSocket.last.end();
  await vi.advanceTimersByTimeAsync(1500);
  expect(session.snapshot().lost).toBe(false);
  await vi.advanceTimersByTimeAsync(700);
  expect(session.snapshot().lost).toBe(true);
  open({ reset: false });
  await settle();
  expect(session.snapshot().lost).toBe(false);
});

test('stop is sent and shown at once', async () => {
  const socket = open();
  const turn = { since: at, stopping: false };
  const state = { agent: 'connected', message: null, turn, typing: false, waiting: 0, other: false };
  socket.receive({ type: 'state', n: 6, state });
  session.stop();
  await settle();
  expect(socket.sent).toEqual([{ type: 'stop' }]);
  expect(session.snapshot().view.state?.turn?.stopping).toBe(true);
});

test('older entries are read once at a time', async () => {
  session.close();
  const older = vi.fn(() => Promise.resolve({ entries: [], older: false }));
  session = new ChatSession('c1', { open: FakeSocket.make, older });
  session.start();
  open({ older: true }).receive(userEntry(7, null));
  void session.loadOlder();
  void session.loadOlder();
  await settle();
  expect(older.mock.calls).toEqual([['c1', 7]]);
  expect(session.snapshot().view.older).toBe(false);
});

test('failed read of older entries can be repeated', async () => {
  session.close();
  const older = vi.fn(() => Promise.reject(new Error('away')));
  session = new ChatSession('c1', { open: FakeSocket.make, older });
  session.start();
  open({ older: true }).receive(userEntry(7, null));
  await session.loadOlder();
  expect(session.snapshot()).toMatchObject({ olderFailed: true, loadingOlder: false });
  await session.loadOlder();
  expect(older).toHaveBeenCalledTimes(2);
});
