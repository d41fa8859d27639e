import { expect, test, vi } from 'vitest';

import { Failure } from '../api/failure';
import { DraftFiles, type Uploader } from './attachments';
import { numberedName, plainName } from './upload-names';

const file = (name: string, type = 'text/plain'): File => new File(['abc'], name, { type });
const uploader = (send: Uploader['send'], taken: string[] = []): Uploader => ({
  prepare: () => Promise.resolve(new Set(taken)),
  send,
});

test('taken name gets a number', async () => {
  const names: string[] = [];
  const files = new DraftFiles(
    'a',
    uploader(
      ({ name }) => {
        names.push(name);
        return names.length < 2 ? Promise.reject(new Failure(409, 'already_exists', '')) : Promise.resolve();
      },
      ['a.txt'],
    ),
  );
  files.add([file('a.txt')]);
  await vi.waitFor(() => expect(files.list()[0]?.state).toBe('done'));
  expect(names).toEqual(['a (2).txt', 'a (3).txt']);
  expect(files.take()).toEqual([{ path: 'uploads/a (3).txt', name: 'a.txt', size: 3, picture: false }]);
  expect(files.list()).toEqual([]);
});

test('only pictures that the model takes are shown as pictures', async () => {
  const files = new DraftFiles(
    'b',
    uploader(() => Promise.resolve()),
  );
  files.add([file('a.png', 'image/png'), file('b.svg', 'image/svg+xml')]);
  await vi.waitFor(() => expect(files.list().every(({ state }) => state === 'done')).toBe(true));
  expect(files.list().map(({ picture }) => picture)).toEqual([true, false]);
});

test('failed file can be sent again, a removed one is cancelled', async () => {
  let fails = true;
  const signals: AbortSignal[] = [];
  const files = new DraftFiles(
    'c',
    uploader((_, { signal }) => {
      signals.push(signal);
      return fails ? Promise.reject(new Failure(507, 'disk_full', '')) : new Promise(() => undefined);
    }),
  );
  files.add([file('a.txt')]);
  await vi.waitFor(() => expect(files.list()[0]?.failure?.code).toBe('disk_full'));
  fails = false;
  const { key } = files.list()[0]!;
  files.retry(key);
  await vi.waitFor(() => expect(signals).toHaveLength(2));
  files.remove(key);
  expect(signals[1]?.aborted).toBe(true);
  expect(files.list()).toEqual([]);
});

test('message takes 20 files', () => {
  const files = new DraftFiles(
    'd',
    uploader(() => new Promise(() => undefined)),
  );
  expect(files.add(Array.from({ length: 21 }, (_, at) => file(`${at}`)))).toBe(false);
  expect(files.list()).toHaveLength(20);
});

test('uploaded files survive a reload', async () => {
  const files = new DraftFiles(
    'e',
    uploader(() => Promise.resolve()),
  );
  files.add([file('a.txt')]);
  await vi.waitFor(() => expect(files.list()[0]?.state).toBe('done'));
  expect(
    new DraftFiles(
      'e',
      uploader(() => Promise.resolve()),
    ).list(),
  ).toHaveLength(1);
});

test('hostile names become plain ones', () => {
  expect(plainName('../../etc/passwd')).toBe('.._.._etc_passwd');
  expect(plainName('..')).toBe('file');
  expect(plainName('a\nb.txt')).toBe('a_b.txt');
  expect(new TextEncoder().encode(plainName(`${'文'.repeat(300)}.txt`)).length).toBeLessThanOrEqual(240);
  expect(numberedName('.env', 2)).toBe('.env (2)');
});
