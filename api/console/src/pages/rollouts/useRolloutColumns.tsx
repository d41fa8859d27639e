import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';

import type { Rollout } from '../../api/queries/rollouts';
import { Actor } from '../../components/Actor';
import { StatusPill } from '../../components/StatusPill';
import type { Column } from '../../components/table/ServerTable';
import { TaskBar } from '../../components/TaskBar';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import { goalOf, stateOfRollout, titleOf } from './phases';
import styles from './rollouts.module.css';

/** Columns of the list of rollouts. */
export function useRolloutColumns(): Column<Rollout>[] {
  const t = useT();
  return useMemo<Column<Rollout>[]>(
    () => [
      {
        id: 'what',
        header: t('rollout.what'),
        cell: (rollout) => (
          <Link
            to="/admin/rollouts/$id"
            params={{ id: rollout.id }}
            title={rollout.reference}
            className={styles.name}
          >
            {t(titleOf(rollout), { goal: visibleText(goalOf(rollout)) })}
          </Link>
        ),
      },
      {
        id: 'state',
        header: t('objects.state'),
        cell: (rollout) => <StatusPill state={stateOfRollout(rollout)} />,
      },
      {
        id: 'progress',
        header: t('rollout.users'),
        cell: ({ progress }) => {
          const { done, failed, total } = progress;
          const text = t('rollouts.done', { done, total, failed });
          return (
            <div className={styles.progress}>
              <TaskBar progress={progress} label={text} />
              <small>{text}</small>
            </div>
          );
        },
      },
      {
        id: 'actor',
        header: t('audit.actor'),
        drop: 2,
        short: true,
        cell: ({ actor }) => <Actor name={actor} />,
      },
      { id: 'started', header: t('objects.started'), drop: 1, cell: (row) => <Time at={row.created_at} /> },
    ],
    [t],
  );
}
