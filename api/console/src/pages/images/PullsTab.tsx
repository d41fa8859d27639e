import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useMemo } from 'react';

import { Failure } from '../../api/failure';
import { listedQuery } from '../../api/queries/objects';
import type { Schemas } from '../../api/types';
import { Actor } from '../../components/Actor';
import { EmptyState } from '../../components/EmptyState';
import { TonePill } from '../../components/StatusPill';
import { listQuery } from '../../components/table/list-state';
import { type Column, ServerTable } from '../../components/table/ServerTable';
import { useListState } from '../../components/table/useListState';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';
import { shortImage } from '../../modules/image-name';
import { visibleText } from '../../modules/visible-text';
import styles from './images.module.css';
import { pullState } from './pulls/pull-state';
import { usePullsOfPage } from './pulls/pulls-context';

const FILTERS: readonly string[] = [];
/** Newest tasks among which those of pulls are shown. */
const TASKS = 200;

/** Pulls that were requested: those under way are above the tabs, the others with their results here. */
export function PullsTab(): ReactNode {
  const t = useT();
  const control = useListState(FILTERS);
  const { failure } = usePullsOfPage();
  const { data, error, refetch } = useQuery(
    listedQuery('/api/admin/tasks', { ...listQuery(control.state, TASKS), page: 1 }),
  );
  const columns = useMemo<Column<Schemas['Task']>[]>(
    () => [
      {
        id: 'image',
        header: t('users.image'),
        cell: ({ id, results }) => {
          const reference = results[0]?.object.replace(/^image\//, '') ?? '';
          return (
            <Link to="/admin/tasks/$id" params={{ id }} title={reference}>
              {shortImage(visibleText(reference)) || t('task.pull')}
            </Link>
          );
        },
      },
      {
        id: 'state',
        header: t('objects.state'),
        cell: (task) => {
          const { tone, label } = pullState(task);
          return <TonePill tone={tone}>{t(label)}</TonePill>;
        },
      },
      {
        id: 'why',
        header: t('objects.why'),
        drop: 1,
        cell: ({ results: [first], failed }) =>
          failed > 0 && (
            <span lang="en" className={styles.message} title={first?.message}>
              {visibleText(first?.message ?? '')}
            </span>
          ),
      },
      {
        id: 'actor',
        header: t('audit.actor'),
        drop: 2,
        short: true,
        cell: ({ actor }) => <Actor name={actor} />,
      },
      {
        id: 'started',
        header: t('objects.started'),
        drop: 1,
        cell: ({ started_at: at }) => (at ? <Time at={at} /> : '–'),
      },
    ],
    [t],
  );
  const tasks = data as Schemas['Tasks'] | undefined;
  const shown = failure ?? (error ? Failure.from(error) : undefined);
  return (
    <ServerTable
      label={t('images.tab.pulls')}
      columns={columns}
      rows={tasks?.tasks.filter(({ type }) => type === 'pull')}
      page={undefined}
      rowId={({ id }) => id}
      control={control}
      failure={shown}
      onRetry={() => void refetch()}
      empty={<EmptyState title={t('pulls.none')} text={t('pulls.none.text')} />}
    />
  );
}
