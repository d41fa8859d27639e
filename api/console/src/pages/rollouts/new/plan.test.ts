import { expect, test } from 'vitest';

import { readPlan, requestOf, startCommand, writePlan } from './plan';

test('plan survives its way through the address', () => {
  const search = { image: '2', who: 'users', user: ['alice', 'bob'], batch: '3', pause: 'false' };
  const plan = readPlan(search);
  expect(readPlan(writePlan(plan))).toEqual(plan);
  expect(readPlan({ image: '2', group: 'sales', who: 'groups' }).groups).toEqual(['sales']);
});

test('request names exactly whom the plan is for', () => {
  const plan = readPlan({ image: '2', who: 'image', from: 'echo:1', batch: '3' });
  expect(requestOf(plan)).toMatchObject({
    path: '/api/admin/images/migrate',
    body: { image: 'echo:1', target: '2', max_unavailable: 3, pause_on_failure: true },
  });
  expect(requestOf({ ...plan, who: 'groups' })).toBeUndefined();
  expect(requestOf({ ...plan, who: 'all' })?.body).toMatchObject({ tag: '2', all: true });
  expect(requestOf({ ...plan, image: ' ' })).toBeUndefined();
});

test('command names the users of a group', () => {
  const plan = readPlan({ image: 'echo:2', who: 'groups', group: 'sales', timeout: '5m', pause: 'false' });
  expect(startCommand(plan, ['alice', "o'neil"])).toBe(
    "agentyard rollout start echo:2 --user alice --user 'o'\\''neil' --health-timeout 5m --no-pause-on-failure",
  );
  expect(startCommand(plan, undefined)).toBeUndefined();
});
