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

test('settings are found by title and by key', () => {
  const tag = {
    kind: 'setting',
    text: '镜像标签',
    alias: 'image.tag',
    link: linkTo('setting', 'image.tag'),
  } as const;
  expect(rankItems([tag], '标签', 6)).toHaveLength(1);
  expect(rankItems([tag], 'Image.T', 6)).toHaveLength(1);
  expect(rankItems([tag], 'memory', 6)).toHaveLength(0);
});
