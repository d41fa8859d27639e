import type { Schemas } from '../../../api/types';
import type { ShownState } from '../../../modules/state';

/** The state of a requested pull by its task. */
export function pullState(task: Schemas['Task']): ShownState {
  if (!task.finished_at) return { tone: 'wait', label: 'pull.state.now' };
  if (task.failed > 0) return { tone: 'bad', label: 'rollout.failed' };
  if (task.cancelled > 0) return { tone: 'off', label: 'task.cancelled' };
  return { tone: 'ok', label: 'pull.state.done' };
}
