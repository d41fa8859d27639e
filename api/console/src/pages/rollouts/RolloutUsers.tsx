import type { UseQueryResult } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useMemo } from 'react';

import { Failure } from '../../api/failure';
import type { Rollout, RolloutDetail, RolloutUser } from '../../api/queries/rollouts';
import { EmptyState } from '../../components/EmptyState';
import { TonePill } from '../../components/StatusPill';
import { ListFilters } from '../../components/table/ListFilters';
import { type Column, ServerTable } from '../../components/table/ServerTable';
import type { ListControl } from '../../components/table/useListState';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';
import { shortImage } from '../../modules/image-name';
import { visibleText } from '../../modules/visible-text';
import { FailureReason } from './FailureReason';
import { changesImage, stateOfTarget } from './phases';
import styles from './rollouts.module.css';

interface Props {
  id: string;
  rollout: Rollout;
  query: UseQueryResult<RolloutDetail>;
  control: ListControl;
}

/** The result of each user of a rollout, in the order in which they are moved. */
export function RolloutUsers({ id, rollout, query, control }: Props): ReactNode {
  const t = useT();
  const ofImage = changesImage(rollout);
  const { data, error, refetch, isPlaceholderData } = query;
  const columns = useMemo<Column<RolloutUser>[]>(() => {
    const none = <span className="dim">–</span>;
    const all: Column<RolloutUser>[] = [
      {
        id: 'name',
        header: t('users.name'),
        cell: ({ username: name }) => (
          <Link to="/admin/users/$name" params={{ name }}>
            {name}
          </Link>
        ),
      },
      {
        id: 'state',
        header: t('objects.state'),
        cell: ({ state }) => {
          const [tone, label] = stateOfTarget(state);
          if (state === 'pending') return <span className="dim">{t(label)}</span>;
          return <TonePill tone={tone}>{t(label)}</TonePill>;
        },
      },
      {
        id: 'why',
        header: t('objects.why'),
        cell: ({ message }) => (message === '' ? none : <FailureReason message={message} isShort />),
      },
      {
        id: 'before',
        header: t('rollout.before'),
        drop: 2,
        cell: ({ previous_image: before }) =>
          before ? <code title={before}>{visibleText(shortImage(before))}</code> : none,
      },
      {
        id: 'moved',
        header: t('rollout.moved.at'),
        drop: 1,
        cell: ({ moved_at: at }) => (at ? <Time at={at} /> : none),
      },
    ];
    return ofImage ? all : all.filter((column) => column.id !== 'before');
  }, [t, ofImage]);
  return (
    <section className={styles.users}>
      <h2>{t('section.users')}</h2>
      <ListFilters control={control} />
      <ServerTable
        key={id}
        label={t('section.users')}
        columns={columns}
        rows={data?.users}
        page={data}
        isPrevious={isPlaceholderData}
        rowId={({ username }) => username}
        control={control}
        failure={error && data === undefined ? Failure.from(error) : undefined}
        onRetry={() => void refetch()}
        empty={<EmptyState title={t('rollout.users.none')} />}
      />
    </section>
  );
}
