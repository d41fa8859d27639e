import { CloseButton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { newestRolloutsQuery } from '../../api/queries/config';
import { TonePill } from '../../components/StatusPill';
import { TaskBar } from '../../components/TaskBar';
import { type MessageKey, useT } from '../../i18n';
import { rolloutLink } from '../../modules/rollout-link';
import type { Tone } from '../../modules/state';
import type { LastTask } from '../../modules/useLastTask';
import styles from './config.module.css';
import { PausedRollout } from './PausedRollout';
import { revisionOf, shownRollout } from './rollout-words';

/** Progress of the rollout that brings settings to agents, and what can be done when it has paused. */
export function RolloutStrip({ task, setTask }: LastTask): ReactNode {
  const t = useT();
  const { data } = useQuery(newestRolloutsQuery);
  const rollout = data && shownRollout(data.rollouts, task);
  if (rollout === undefined) return null;
  const { id, phase, progress, reference, finished_at: end } = rollout;
  const { total, done, failed, cancelled } = progress;
  const words = t('task.progress', { done, total, failed, cancelled });
  const [tone, state]: [Tone, MessageKey] =
    phase === 'paused'
      ? ['warn', 'rollout.paused']
      : !end
        ? ['wait', 'rollout.rolling']
        : phase === 'succeeded' && failed === 0
          ? ['ok', 'rollout.succeeded']
          : [failed > 0 ? 'bad' : 'off', failed > 0 ? 'task.failed' : 'config.rollout.replaced'];
  return (
    <section className={styles.strip} aria-label={t('config.rollout')}>
      <div className={styles.stripRow} role="status">
        <strong>{t('config.rollout.of', { revision: String(revisionOf(reference) ?? reference) })}</strong>
        <TonePill tone={tone}>{t(state)}</TonePill>
        <span>{words}</span>
        <TaskBar className={styles.stripBar} progress={progress} label={words} />
        <Link {...rolloutLink(id)}>{t('config.rollout.show')}</Link>
        {end && <CloseButton size="sm" aria-label={t('toast.close')} onClick={() => setTask(undefined)} />}
      </div>
      {!end && phase !== 'paused' && (
        <small>
          {t('config.rollout.steps', { most: rollout.max_unavailable, time: rollout.health_timeout })}
        </small>
      )}
      {phase === 'paused' && <PausedRollout rollout={rollout} />}
    </section>
  );
}
