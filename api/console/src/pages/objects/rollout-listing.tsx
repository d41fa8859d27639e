import { Link } from '@tanstack/react-router';

import type { Schemas } from '../../api/types';
import { Actor } from '../../components/Actor';
import { TonePill } from '../../components/StatusPill';
import { Time } from '../../components/Time';
import type { MessageKey } from '../../i18n';
import type { Tone } from '../../modules/state';
import { TASK_TYPES } from '../../modules/task-texts';
import { listing } from './listing';
import styles from './objects.module.css';

const PHASES: Record<Schemas['RolloutPhase'], [Tone, MessageKey]> = {
  pulling: ['wait', 'rollout.pulling'],
  rolling: ['wait', 'rollout.rolling'],
  paused: ['warn', 'rollout.paused'],
  rolling_back: ['wait', 'rollout.rolling.back'],
  cancelling: ['wait', 'rollout.cancelling'],
  succeeded: ['ok', 'rollout.succeeded'],
  failed: ['bad', 'rollout.failed'],
  rolled_back: ['off', 'rollout.rolled.back'],
  cancelled: ['off', 'task.cancelled'],
};

export const rollouts = listing<Schemas['Rollouts'], Schemas['Rollout']>({
  title: 'section.rollouts',
  path: '/api/admin/images/rollouts',
  kind: 'rollout',
  rows: (answer) => answer.rollouts,
  rowId: ({ id }) => id,
  columns: (t) => [
    {
      id: 'what',
      header: t('rollout.what'),
      short: true,
      cell: ({ id, reference, type }) => (
        <>
          <Link to="/admin/tasks/$id" params={{ id }}>
            {t(TASK_TYPES[type] ?? 'task.title')}
          </Link>
          {(type === 'upgrade' || type === 'migrate') && (
            <div>
              <small title={reference}>{reference.slice(reference.lastIndexOf('/') + 1)}</small>
            </div>
          )}
        </>
      ),
    },
    {
      id: 'state',
      header: t('objects.state'),
      cell: ({ phase }) => <TonePill tone={PHASES[phase][0]}>{t(PHASES[phase][1])}</TonePill>,
    },
    {
      id: 'why',
      header: t('objects.why'),
      drop: 1,
      cell: ({ message }) => (
        <span lang="en" className={styles.message} title={message}>
          {message}
        </span>
      ),
    },
    {
      id: 'progress',
      header: t('rollout.users'),
      numeric: true,
      cell: ({ progress: { done, total } }) => t('rollout.progress', { done, total }),
    },
    {
      id: 'actor',
      header: t('audit.actor'),
      drop: 2,
      short: true,
      cell: ({ actor }) => <Actor name={actor} />,
    },
    { id: 'created', header: t('objects.started'), drop: 2, cell: (row) => <Time at={row.created_at} /> },
  ],
  none: 'objects.none.rollouts',
  commands: [
    'agentyard rollout start IMAGE --all',
    'agentyard rollout status ID --watch',
    'agentyard rollout pause ID',
    'agentyard rollout rollback ID',
    'agentyard rollout cancel ID',
  ],
});
