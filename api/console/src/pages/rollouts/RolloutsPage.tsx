import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { rolloutsQuery } from '../../api/queries/rollouts';
import { CommandLine } from '../../components/CommandLine';
import { EmptyState } from '../../components/EmptyState';
import { LinkButton } from '../../components/LinkButton';
import { listQuery } from '../../components/table/list-state';
import { ListFilters } from '../../components/table/ListFilters';
import { ServerTable } from '../../components/table/ServerTable';
import { useListState } from '../../components/table/useListState';
import { useT } from '../../i18n';
import { keys } from '../../api/keys';
import { useReadAgain } from '../../modules/useReadAgain';
import styles from './rollouts.module.css';
import { useRolloutColumns } from './useRolloutColumns';

const FILTERS: readonly string[] = [];
const COMMANDS = [
  'agentyard rollout start IMAGE --all',
  'agentyard rollout status ID --watch',
  'agentyard rollout pause ID',
  'agentyard rollout rollback ID',
];

/** All rollouts, newest first. */
export function RolloutsPage(): ReactNode {
  const t = useT();
  const control = useListState(FILTERS);
  const query = listQuery(control.state);
  const { data, error, refetch, isPlaceholderData } = useQuery(rolloutsQuery(query));
  const open = data?.rollouts.filter(({ finished_at: end }) => !end).length ?? 0;
  useReadAgain(keys.list('rollout', query), open === 0);
  const columns = useRolloutColumns();
  const start = (
    <LinkButton to="/admin/rollouts/new" variant="filled">
      {t('rollout.new')}
    </LinkButton>
  );
  return (
    <div className="stack">
      <div>
        <div className={styles.title}>
          <div className="grow">
            <h1>{t('section.rollouts')}</h1>
            {data && <small>{t('rollouts.count', { total: data.total, open })}</small>}
          </div>
          {start}
        </div>
        <ListFilters control={control} searchLabel={t('rollouts.search')} />
        <ServerTable
          label={t('section.rollouts')}
          columns={columns}
          rows={data?.rollouts}
          page={data}
          isPrevious={isPlaceholderData}
          rowId={({ id }) => id}
          control={control}
          failure={error ? Failure.from(error) : undefined}
          onRetry={() => void refetch()}
          empty={<EmptyState title={t('rollouts.none')} text={t('rollouts.none.text')} action={start} />}
        />
      </div>
      <CommandLine commands={COMMANDS} />
    </div>
  );
}
