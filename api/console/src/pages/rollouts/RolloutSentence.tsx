import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Rollout, RolloutUser } from '../../api/queries/rollouts';
import { Actor } from '../../components/Actor';
import states from '../../components/states.module.css';
import { TaskBar } from '../../components/TaskBar';
import { Time } from '../../components/Time';
import { Rich, useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import { changesOf } from './changes';
import { stateOfRollout } from './phases';
import { shownProgress } from './progress';
import styles from './rollouts.module.css';
import { sayRollout } from './sentence';

/** Tones in which the sentence stands apart: something has to be done. */
const APART = new Set(['warn', 'bad']);

interface Props {
  rollout: Rollout;
  /** Users of the page that is shown. */
  users: RolloutUser[];
  /** First failed users, by name. */
  failed: string[];
}

/** Progress of a rollout in a sentence and as a bar, who began it, and the server's own words. */
export function RolloutSentence({ rollout, users, failed }: Props): ReactNode {
  const t = useT();
  const { message, actor, created_at: start, finished_at: end, id } = rollout;
  const { tone } = stateOfRollout(rollout);
  const moving = users.filter(({ state }) => state === 'moving').map(({ username }) => username);
  const { moved, why } = sayRollout(rollout, failed, moving);
  const progress = shownProgress(rollout, users);
  const { wayBack } = changesOf(rollout);
  const label = progress && t('task.progress', { ...progress });
  return (
    <section
      className={APART.has(tone) ? states.sentence : `card ${styles.bar ?? ''}`}
      data-tone={tone}
      aria-label={t('rollout.progress.label')}
    >
      <div role="status">
        <strong>{t(moved.key, moved.values)}</strong>
        {why && <> {t(why.key, why.values)}</>}
      </div>
      {progress && label !== undefined && (
        <div className={styles.whole}>
          <TaskBar progress={progress} label={label} />
        </div>
      )}
      <small className={styles.linked}>
        {label !== undefined && `${label} · `}
        <Rich
          k="task.by"
          values={{ actor: <Actor key="actor" name={actor} />, time: <Time key="time" at={start} /> }}
        />
        {end && ' · '}
        {end && <Rich k="task.ended" values={{ time: <Time key="time" at={end} /> }} />}
        {' · '}
        <Link to="/admin/tasks/$id" params={{ id }}>
          {t('rollout.task')}
        </Link>
      </small>
      {wayBack !== undefined && APART.has(tone) && (
        <div>
          <Rich k="rollout.way.back" values={{ command: <code key="command">{wayBack}</code> }} />
        </div>
      )}
      {message !== '' && (
        <details className={styles.said}>
          <summary>{t('rollout.said')}</summary>
          <span lang="en">{visibleText(message)}</span>
        </details>
      )}
      {!end && tone === 'wait' && <small>{t('task.note')}</small>}
    </section>
  );
}
