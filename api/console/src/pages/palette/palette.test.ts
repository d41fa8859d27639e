import { expect, test } from 'vitest';

import { linkTo, rankItems } from './palette-items';

test('names that begin with the words come first', () => {
  const items = ['rebob', 'Bob', 'alice'].map((text) => ({
    kind: 'user' as const,
    text,
    link: linkTo('user', text),
  }));
  expect(rankItems(items, 'bo', 6).map(({ text }) => text)).toEqual(['Bob', 'rebob']);
  expect(rankItems(items, 'b', 1)).toHaveLength(1);
});
