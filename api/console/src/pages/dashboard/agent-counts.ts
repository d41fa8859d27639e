import type { Summary } from '../../api/queries/summary';
import type { Schemas } from '../../api/types';
import type { Tone } from '../../modules/state';

/** Numbers of agents, as the overview shows them. */
export interface AgentCounts {
  ready: number;
  /** Running, with something that is not as desired. */
  degraded: number;
  starting: number;
  failed: number;
  unknown: number;
  stopped: number;
  /** All but those that are stopped on purpose. */
  wanted: number;
}

/** Parts of the bar in their order, with their colours. */
export const PARTS = [
  ['ready', 'ok'],
  ['degraded', 'warn'],
  ['starting', 'wait'],
  ['failed', 'bad'],
  ['unknown', 'unknown'],
  ['stopped', 'off'],
] as const satisfies readonly (readonly [keyof AgentCounts, Tone])[];

const PART_OF: Record<Schemas['ContainerStatus'], Exclude<keyof AgentCounts, 'wanted' | 'degraded'>> = {
  running: 'ready',
  starting: 'starting',
  stopping: 'starting',
  deleting: 'starting',
  failed: 'failed',
  unknown: 'unknown',
  stopped: 'stopped',
};

/** Adds up the states of agents; users who are ready with all that belongs to them are running or stopped. */
export function countAgents({ ready, states }: Summary['agents']): AgentCounts {
  const counts = { ready: 0, degraded: 0, starting: 0, failed: 0, unknown: 0, stopped: 0, wanted: 0 };
  for (const { state, count } of states) {
    const part = PART_OF[state];
    counts[part] += count;
    if (part !== 'stopped') counts.wanted += count;
  }
  counts.degraded = Math.min(counts.ready, Math.max(0, counts.ready + counts.stopped - ready));
  counts.ready -= counts.degraded;
  return counts;
}
