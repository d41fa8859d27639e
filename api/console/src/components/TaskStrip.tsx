import { CloseButton } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { useT } from '../i18n';
import { TASK_TYPES } from '../modules/task-texts';
import { useTask } from '../modules/useTask';
import styles from './task-strip.module.css';
import { TaskBar } from './TaskBar';

/** Progress of the task that was started from the page, with the way to its results. */
export function TaskStrip({ id, onClose }: { id: string; onClose: () => void }): ReactNode {
  const t = useT();
  const { data } = useTask(id);
  if (data === undefined) return null;
  const { total, done, failed, cancelled } = data;
  const key = TASK_TYPES[data.type];
  // The users are there before the task begins, which starts their agents.
  const made = data.type === 'batch_create' ? 'task.progress.create' : 'task.progress';
  const progress = t(made, { done, total, failed, cancelled });
  return (
    <div className={styles.strip} role="status">
      <strong>{key === undefined ? data.type : t(key)}</strong>
      <span>{progress}</span>
      <TaskBar className={styles.bar} progress={data} label={progress} />
      <Link to="/admin/tasks/$id" params={{ id }}>
        {t('bulk.show.task')}
      </Link>
      <CloseButton size="sm" aria-label={t('toast.close')} onClick={onClose} />
    </div>
  );
}
