import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactNode, useMemo } from 'react';

import { Failure } from '../../api/failure';
import { historyQuery } from '../../api/queries/config';
import { CommandLine } from '../../components/CommandLine';
import { EmptyState } from '../../components/EmptyState';
import { listQuery, type Search } from '../../components/table/list-state';
import { ListFilters } from '../../components/table/ListFilters';
import { ServerTable } from '../../components/table/ServerTable';
import { useListState } from '../../components/table/useListState';
import { useT } from '../../i18n';
import { useConfigForm } from './config-form';
import { historyColumns } from './history-columns';
import { RevisionDialog } from './RevisionDialog';

const FILTERS = [] as const;
const COMMANDS = ['agentyard config history', 'agentyard config rollback REVISION --dry-run'];

/** Saves with author and time, newest first, and the ways back. */
export function HistoryTab(): ReactNode {
  const t = useT();
  const navigate = useNavigate();
  const control = useListState(FILTERS);
  const search: Search = useSearch({ strict: false });
  const { settings, generation, rollBack, saves } = useConfigForm();
  const { data, error, refetch, isPlaceholderData } = useQuery(historyQuery(listQuery(control.state)));
  const columns = useMemo(
    () => historyColumns(t, { settings, generation, rollBack }),
    [t, settings, generation, rollBack],
  );
  const opened = data?.history.find(({ revision }) => String(revision) === search.revision);
  const close = (): void => {
    const rest = (old: Search): Search => ({ ...old, revision: undefined });
    void navigate({ to: '.', search: rest as never, resetScroll: false });
  };
  return (
    <div className="stack">
      <div>
        <ListFilters control={control} searchLabel={t('config.history.search')} />
        {/* What was saved here is shown at once, what others saved when the reader asks. */}
        <ServerTable
          key={saves}
          label={t('config.tab.history')}
          columns={columns}
          rows={data?.history}
          page={data}
          isPrevious={isPlaceholderData}
          rowId={({ revision }) => String(revision)}
          control={control}
          failure={error ? Failure.from(error) : undefined}
          onRetry={() => void refetch()}
          empty={<EmptyState title={t('config.history.none')} text={t('config.history.none.text')} />}
        />
      </div>
      <CommandLine commands={COMMANDS} />
      {opened && <RevisionDialog revision={opened} onClose={close} />}
    </div>
  );
}
