import { expect, test } from 'vitest';

import type { Rollout, RolloutUser } from '../../api/queries/rollouts';
import { shownProgress } from './progress';

test('on the way back only those who are back count', () => {
  const progress = { total: 3, done: 2, failed: 0, cancelled: 0, running: 1, pending: 0 };
  const rollout = { phase: 'rolling_back', progress } as Rollout;
  const users = ['rolled_back', 'rolling_back', 'done'].map((state) => ({ state }) as RolloutUser);
  expect(shownProgress(rollout, users)).toMatchObject({ done: 1, pending: 1 });
  expect(shownProgress(rollout, users.slice(1))).toBeUndefined();
  expect(shownProgress({ ...rollout, phase: 'rolled_back' }, [])).toBe(progress);
});
