import { getRouteApi, Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { TonePill } from '../../components/StatusPill';
import { TaskBar } from '../../components/TaskBar';
import { Time } from '../../components/Time';
import { Rich, useT } from '../../i18n';
import { CANCELLABLE, ROLLOUTS, TASK_TYPES } from '../../modules/task-texts';
import { useTask } from '../../modules/useTask';
import { CancelTask } from './CancelTask';
import styles from './tasks.module.css';
import { TaskResults } from './TaskResults';

const route = getRouteApi('/admin/tasks/$id');

/** A task: how far it is, and the result for each object. It can be left and found again. */
export function TaskPage(): ReactNode {
  const t = useT();
  const { id } = route.useParams();
  const { data, error, refetch } = useTask(id);
  if (error && data === undefined)
    return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (data === undefined) return <LoadingState rows={4} />;
  const { total, done, failed, cancelled, finished_at: end, started_at: start } = data;
  const key = TASK_TYPES[data.type];
  const text = t('task.progress', { done, total, failed, cancelled });
  const tone = end ? (failed > 0 ? 'bad' : cancelled > 0 ? 'off' : 'ok') : 'wait';
  const state = end
    ? failed > 0
      ? 'task.failed'
      : cancelled > 0
        ? 'task.cancelled'
        : 'task.done'
    : 'task.now';
  return (
    <div className="stack">
      <header>
        <small>
          <Link to="/admin/users">{t('section.users')}</Link> / {t('task.title')}
        </small>
        <div className="row">
          <h1>{key === undefined ? data.type : t(key)}</h1>
          <TonePill tone={tone}>{t(state)}</TonePill>
          <span className="grow" />
          {!end && CANCELLABLE.has(data.type) && <CancelTask id={id} />}
        </div>
        <small>
          {data.actor !== undefined && start && (
            <Rich k="task.by" values={{ actor: data.actor, time: <Time key="time" at={start} /> }} />
          )}
          {end && ' · '}
          {end && <Rich k="task.ended" values={{ time: <Time key="time" at={end} /> }} />}
        </small>
      </header>
      <section className="card">
        <p className={styles.progress}>{text}</p>
        <TaskBar progress={data} label={text} />
        <small className={styles.note}>{t(end ? 'task.note.ended' : 'task.note')}</small>
        {ROLLOUTS.has(data.type) && (
          <Link to="/admin/rollouts/$id" params={{ id }}>
            {t('rollout.show')}
          </Link>
        )}
      </section>
      <TaskResults task={data} />
    </div>
  );
}
