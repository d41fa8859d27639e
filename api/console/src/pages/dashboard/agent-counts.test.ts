import { expect, test } from 'vitest';

import { countAgents } from './agent-counts';

test('stopped agents are not wanted', () => {
  const counts = countAgents([
    { state: 'running', count: 5 },
    { state: 'starting', count: 2 },
    { state: 'deleting', count: 1 },
    { state: 'failed', count: 3 },
    { state: 'stopped', count: 4 },
  ]);
  expect(counts).toEqual({ ready: 5, starting: 3, failed: 3, unknown: 0, stopped: 4, wanted: 11 });
});
