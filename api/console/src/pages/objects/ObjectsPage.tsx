import { useQuery } from '@tanstack/react-query';
import { useMatches } from '@tanstack/react-router';
import { type ReactNode, useMemo } from 'react';

import { Failure } from '../../api/failure';
import { listedQuery } from '../../api/queries/objects';
import { CommandLine } from '../../components/CommandLine';
import { EmptyState } from '../../components/EmptyState';
import { listQuery } from '../../components/table/list-state';
import { ListFilters } from '../../components/table/ListFilters';
import { ServerTable } from '../../components/table/ServerTable';
import { useListState } from '../../components/table/useListState';
import { useT } from '../../i18n';
import { reconcileQuery } from '../../layout/useAttention';
import { LISTED } from './kinds';

const FILTERS = ['not_ready'] as const;

/**
 * Objects of a section that has no page of its own yet: their state, and the commands that change them.
 * `children` come before the list.
 */
export function ObjectsPage({ children }: { children?: ReactNode }): ReactNode {
  const t = useT();
  const matches = useMatches();
  const shown = LISTED[matches.at(-1)?.staticData.listed ?? 'containers'];
  const control = useListState(FILTERS);
  const query = shown.isWhole ? {} : { ...shown.query, ...listQuery(control.state) };
  const { data, error, refetch, isPlaceholderData } = useQuery(listedQuery(shown.path, query));
  const { data: overview } = useQuery(reconcileQuery);
  const bad = overview?.reconcilers.find(({ name }) => name === shown.kind)?.not_ready;
  const columns = useMemo(() => shown.columns(t), [shown, t]);
  const rows = data && shown.rows(data);
  const total = data?.total ?? rows?.length;
  const notReady = t('objects.not.ready');
  const filters = shown.filtersReady
    ? [{ name: 'not_ready', label: notReady, options: [{ value: 'true', text: notReady }] }]
    : [];
  return (
    <div className="stack">
      <div>
        <h1>{t(shown.title)}</h1>
        {total !== undefined && (
          <small>
            {t('objects.total', { total })}
            {bad !== undefined && ` · ${t('objects.bad', { bad })}`}
          </small>
        )}
      </div>
      {children}
      <div>
        {!shown.isWhole && <ListFilters control={control} filters={filters} searchLabel={t('list.search')} />}
        <ServerTable
          key={shown.path}
          label={t(shown.title)}
          columns={columns}
          rows={rows}
          page={shown.isWhole ? undefined : data}
          isPrevious={isPlaceholderData}
          rowId={shown.rowId}
          control={control}
          failure={error ? Failure.from(error) : undefined}
          onRetry={() => void refetch()}
          empty={<EmptyState title={t('objects.none')} text={t(shown.none)} />}
        />
      </div>
      <CommandLine title={t('objects.commands')} commands={shown.commands} />
    </div>
  );
}
