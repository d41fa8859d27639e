import { expect, test } from 'vitest';

import { countAgents } from './agent-counts';

test('stopped agents are not wanted', () => {
  const states = [
    { state: 'running', count: 5 } as const,
    { state: 'starting', count: 2 } as const,
    { state: 'deleting', count: 1 } as const,
    { state: 'failed', count: 3 } as const,
    { state: 'stopped', count: 4 } as const,
  ];
  const counts = { starting: 3, failed: 3, unknown: 0, stopped: 4, wanted: 11 };
  expect(countAgents({ total: 15, ready: 9, states })).toEqual({ ...counts, ready: 5, degraded: 0 });
  expect(countAgents({ total: 15, ready: 7, states })).toEqual({ ...counts, ready: 3, degraded: 2 });
});
