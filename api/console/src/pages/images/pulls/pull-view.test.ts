import { expect, test } from 'vitest';

import { addPullEvent, layerPercent, type PullView, UNREAD_PULL } from './pull-view';

const read = (...events: object[]): PullView =>
  events.reduce<PullView>((view, event) => addPullEvent(view, JSON.stringify(event)), UNREAD_PULL);

test('layers keep their order and the total never goes back', () => {
  const view = read(
    { status: 'Waiting', percent: 0 },
    { status: 'Pulling from library/echo', id: '2', percent: 0 },
    { status: 'Pulling fs layer', id: 'aaaa', percent: 0 },
    { status: 'Pulling fs layer', id: 'bbbb', percent: 0 },
    { status: 'Downloading', id: 'aaaa', progressDetail: { current: 5, total: 10 }, percent: 40 },
    { status: 'Pull complete', id: 'bbbb', percent: 30 },
  );
  expect(view.percent).toBe(40);
  expect(view.layers.map(({ id, status }) => [id, status])).toEqual([
    ['aaaa', 'Downloading'],
    ['bbbb', 'Pull complete'],
  ]);
  expect(view.layers.map(layerPercent)).toEqual([40, 100]);
});

test('end of a pull keeps its reason', () => {
  expect(read({ status: 'done', digest: 'sha256:1' })).toMatchObject({ percent: 100, end: { done: true } });
  const failed = read({ status: 'error', error: 'refused\u202e' });
  expect(failed.end).toEqual({ error: 'refused\\u202e' });
});
