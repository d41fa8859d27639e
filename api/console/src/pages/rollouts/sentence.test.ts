import { expect, test } from 'vitest';

import type { Rollout } from '../../api/queries/rollouts';
import { en } from '../../i18n/en';
import { translator } from '../../i18n/translator';
import { sayRollout } from './sentence';

const t = translator<keyof typeof en>(en, 'en');

function say(part: Partial<Rollout>, failed: string[] = []): string {
  const rollout = {
    type: 'upgrade',
    phase: 'rolling',
    desired: 'run',
    reference: 'docker.io/library/echo:2',
    progress: { total: 5, done: 3, failed: failed.length, cancelled: 0, running: 0, pending: 1 },
    ...part,
  } as Rollout;
  const { moved, why } = sayRollout(rollout, failed);
  return t(moved.key, moved.values) + (why ? ` ${t(why.key, why.values)}` : '');
}

test('paused rollout names the user who failed', () => {
  expect(say({ phase: 'paused' }, ['dave'])).toBe(
    'Moved 3 of 5 users to echo:2. Paused: dave’s agent did not become ready.',
  );
  expect(say({ phase: 'paused' }, ['dave', 'erin'])).toContain('dave’s agent and 1 more did not');
  expect(say({ phase: 'paused', desired: 'pause' }, ['dave'])).toContain('Paused by an administrator.');
});

test('rollout of a configuration speaks of agents', () => {
  expect(say({ type: 'config', reference: 'configuration 5' })).toBe(
    'Brought configuration 5 to 3 of 5 agents.',
  );
});
