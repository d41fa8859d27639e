import { useQuery } from '@tanstack/react-query';
import { Link, useMatches } from '@tanstack/react-router';
import { type ReactNode, useMemo } from 'react';

import { Failure } from '../../api/failure';
import { listedQuery } from '../../api/queries/objects';
import { CommandLine } from '../../components/CommandLine';
import { EmptyState } from '../../components/EmptyState';
import styles from '../../components/object.module.css';
import { listQuery } from '../../components/table/list-state';
import { ListFilters } from '../../components/table/ListFilters';
import { ServerTable } from '../../components/table/ServerTable';
import { withSingleValues } from '../../components/table/single-values';
import { useListState } from '../../components/table/useListState';
import { useT } from '../../i18n';
import { useReasonOptions } from '../../i18n/reasons';
import { reconcileQuery } from '../../layout/useAttention';
import { LISTED } from './kinds';

const NO_FILTERS: readonly string[] = [];

interface Props {
  /** Before the list. */
  children?: ReactNode;
  /** After the list. */
  after?: ReactNode;
  /** Buttons beside the title. */
  actions?: ReactNode;
}

/** Objects of a section that are read here: search, filters, state, links, and the commands that do the same. */
export function ObjectsPage({ children, after, actions }: Props): ReactNode {
  const t = useT();
  const reasons = useReasonOptions();
  const matches = useMatches();
  const shown = LISTED[matches.at(-1)?.staticData.listed ?? 'objects'];
  const control = withSingleValues(useListState(shown.filterNames ?? NO_FILTERS));
  const { state } = control;
  const query = { ...shown.query, ...listQuery(state) };
  const { data, error, refetch, isPlaceholderData } = useQuery(listedQuery(shown.path, query, shown));
  const { data: overview } = useQuery(reconcileQuery);
  const bad = overview?.reconcilers.find(({ name }) => name === shown.kind)?.not_ready;
  const columns = useMemo(() => shown.columns(t), [shown, t]);
  const rows = data && shown.rows(data);
  const total = data?.total;
  const commands = typeof shown.commands === 'function' ? shown.commands(state) : shown.commands;
  return (
    <div className="stack">
      <div className="row">
        <div className="grow">
          {shown.parent && (
            <small className={styles.crumbs}>
              <Link to={shown.parent.to as '/admin/reconcile'}>{t(shown.parent.title)}</Link> /{' '}
              {t(shown.title)}
            </small>
          )}
          <h1>{t(shown.title)}</h1>
          {total !== undefined && (
            <small>
              {t('objects.total', { total })}
              {bad !== undefined && ` · ${t('objects.bad', { bad })}`}
            </small>
          )}
        </div>
        {actions}
      </div>
      {children}
      <div>
        {shown.hasNoSearch !== true && (
          <ListFilters
            control={control}
            filters={shown.filters?.({ t, state, reasons }) ?? []}
            searchLabel={t(shown.search ?? 'list.search')}
          />
        )}
        <ServerTable
          key={shown.path}
          label={t(shown.title)}
          columns={columns}
          rows={rows}
          page={data}
          isPrevious={isPlaceholderData}
          rowId={shown.rowId}
          control={control}
          failure={error ? Failure.from(error) : undefined}
          onRetry={() => void refetch()}
          empty={<EmptyState title={t('objects.none')} text={t(shown.none)} />}
        />
      </div>
      {after}
      <CommandLine title={t(shown.commandsTitle ?? 'objects.commands')} commands={commands} />
    </div>
  );
}
