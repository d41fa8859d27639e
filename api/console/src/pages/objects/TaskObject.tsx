import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import { useT } from '../../i18n';
import { ObjectLink } from '../../modules/objects/ObjectLink';

/** Types of tasks that are rollouts of the same id. */
const ROLLOUTS: ReadonlySet<string> = new Set(['upgrade', 'migrate', 'config', 'adapter']);

/** Object of a task, as a link: its rollout, or its only object. */
export function TaskObject({ task }: { task: Schemas['Task'] }): ReactNode {
  const t = useT();
  const { id, type, results, total } = task;
  if (ROLLOUTS.has(type)) {
    return (
      <Link to={'/admin/rollouts/$id' as '/admin/tasks/$id'} params={{ id }}>
        {t('tasks.rollout')}
      </Link>
    );
  }
  const [only] = results;
  if (total === 1 && only) return <ObjectLink object={only.object} />;
  return <span className="dim">–</span>;
}
