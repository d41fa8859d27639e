import { expect, test } from 'vitest';

import { placeGroup } from './group-tree';

const groups = [
  { name: 'all', parent: null },
  { name: 'dev', parent: 'all' },
  { name: 'web', parent: 'dev' },
  { name: 'ops', parent: 'dev' },
];

test('place of a group names the way up and the groups in it', () => {
  const { above, below, group } = placeGroup(groups, 'dev');
  expect(above.map(({ name }) => name)).toEqual(['all']);
  expect(below.map(({ name }) => name)).toEqual(['web', 'ops']);
  expect(group?.name).toBe('dev');
  expect(placeGroup(groups, 'web').above.map(({ name }) => name)).toEqual(['all', 'dev']);
});

test('cycle ends the way up', () => {
  const cycle = [
    { name: 'a', parent: 'b' },
    { name: 'b', parent: 'a' },
  ];
  expect(placeGroup(cycle, 'a').above.map(({ name }) => name)).toEqual(['a', 'b']);
  expect(placeGroup(cycle, 'none').group).toBeUndefined();
});
