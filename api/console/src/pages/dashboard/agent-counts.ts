import type { Schemas } from '../../api/types';
import type { Tone } from '../../modules/state';

/** Numbers of agents, as the overview shows them. */
export interface AgentCounts {
  ready: number;
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
  ['starting', 'wait'],
  ['failed', 'bad'],
  ['unknown', 'unknown'],
  ['stopped', 'off'],
] as const satisfies readonly (readonly [keyof AgentCounts, Tone])[];

const PART_OF: Record<Schemas['ContainerStatus'], Exclude<keyof AgentCounts, 'wanted'>> = {
  running: 'ready',
  starting: 'starting',
  stopping: 'starting',
  deleting: 'starting',
  failed: 'failed',
  unknown: 'unknown',
  stopped: 'stopped',
};

/** Adds up the states of agents. */
export function countAgents(states: { state: Schemas['ContainerStatus']; count: number }[]): AgentCounts {
  const counts: AgentCounts = { ready: 0, starting: 0, failed: 0, unknown: 0, stopped: 0, wanted: 0 };
  for (const { state, count } of states) {
    const part = PART_OF[state];
    counts[part] += count;
    if (part !== 'stopped') counts.wanted += count;
  }
  return counts;
}
