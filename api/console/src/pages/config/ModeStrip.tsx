import type { ReactNode } from 'react';

import { TaskStrip } from '../../components/TaskStrip';
import type { LastTask } from '../../modules/useLastTask';

/** Progress of the removal of users that a change of the mode has started. */
export function ModeStrip({ task, setTask }: LastTask): ReactNode {
  if (task === undefined) return null;
  return <TaskStrip id={task} onClose={() => setTask(undefined)} />;
}
