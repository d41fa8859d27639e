import { expect, test } from 'vitest';

import { helloFrame } from '../testing/fake-socket';
import type { AnswerEntry, ServerFrame } from './protocol';
import { addOlder, applyFrame, EMPTY_VIEW } from './view';

const at = '2026-05-11T09:00:00Z';
const answer = (id: number, text = `answer ${id}`): AnswerEntry => ({
  id,
  at,
  kind: 'answer',
  text,
  model: null,
  streaming: false,
  used_percent: null,
});
const play = (frames: unknown[], view = EMPTY_VIEW) =>
  (frames as ServerFrame[]).reduce((before, frame) => applyFrame(before, frame), view);
const ids = ({ entries }: { entries: readonly { id: number }[] }) => entries.map(({ id }) => id);

test('entries are ordered by id and replaced by id', () => {
  const view = play([
    helloFrame(),
    { type: 'entry', n: 6, entry: answer(2) },
    { type: 'entry', n: 7, entry: answer(1) },
    { type: 'entry', n: 8, entry: answer(2, 'whole') },
  ]);
  expect(ids(view)).toEqual([1, 2]);
  expect(view.entries[1]).toMatchObject({ text: 'whole' });
  expect(view.n).toBe(8);
});

test('removed entry is gone, unknown id changes nothing', () => {
  const view = play([
    helloFrame(),
    { type: 'entry', n: 6, entry: answer(1) },
    { type: 'remove', n: 7, id: 1 },
    { type: 'remove', n: 8, id: 99 },
  ]);
  expect(view.entries).toEqual([]);
  expect(view.n).toBe(8);
});

test('reset forgets entries, a resumed hello keeps them and the position', () => {
  const view = play([helloFrame(), { type: 'entry', n: 6, entry: answer(1) }]);
  const resumed = play([helloFrame({ reset: false, n: 9 })], view);
  expect(ids(resumed)).toEqual([1]);
  expect(resumed.n).toBe(6);
  const reset = play([helloFrame({ epoch: 'e2', n: 2, older: true })], view);
  expect(reset).toMatchObject({ entries: [], older: true, n: 0, begun: 2, epoch: 'e2' });
});

test('older page goes before what is there', () => {
  const view = play([helloFrame({ older: true }), { type: 'entry', n: 6, entry: answer(5) }]);
  const more = addOlder(view, { entries: [answer(3), answer(4), answer(5, 'stale')], older: true });
  expect(ids(more)).toEqual([3, 4, 5]);
  expect(more.entries[2]).toMatchObject({ text: 'answer 5' });
  expect(more.older).toBe(true);
  expect(addOlder(more, { entries: [], older: true }).older).toBe(false);
});

test('change of an entry that is not loaded is left to its page', () => {
  const view = play([
    helloFrame({ older: true }),
    { type: 'entry', n: 5, entry: answer(8) },
    { type: 'entry', n: 5, entry: answer(7) },
    { type: 'entry', n: 6, entry: answer(2) },
  ]);
  expect(ids(view)).toEqual([7, 8]);
  expect(view.n).toBe(6);
});

test('state and name are replaced whole', () => {
  const state = { agent: 'connected', message: null, turn: null, typing: true, waiting: 1, other: false };
  const conversation = { ...(helloFrame().conversation as object), title: 'Renamed' };
  const view = play([
    helloFrame(),
    { type: 'state', n: 6, state },
    { type: 'conversation', n: 7, conversation },
  ]);
  expect(view.state).toEqual(state);
  expect(view.conversation?.title).toBe('Renamed');
});
