import { useQuery } from '@tanstack/react-query';
import { useMatches } from '@tanstack/react-router';
import { type ReactNode, useMemo } from 'react';

import { Failure } from '../../api/failure';
import { objectsQuery } from '../../api/queries/objects';
import type { Schemas } from '../../api/types';
import { CommandLine } from '../../components/CommandLine';
import { EmptyState } from '../../components/EmptyState';
import { StatusPill } from '../../components/StatusPill';
import { listQuery } from '../../components/table/list-state';
import { ListFilters } from '../../components/table/ListFilters';
import { type Column, ServerTable } from '../../components/table/ServerTable';
import { useListState } from '../../components/table/useListState';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';
import { reconcileQuery } from '../../layout/useAttention';
import { stateOf } from '../../modules/state';
import { LISTED } from './kinds';
import { Why } from './Why';

type Item = Schemas['ObjectHeader'];

const FILTERS = ['not_ready'] as const;

/** Objects of a section that has no page of its own yet: their state, and the commands that change them. */
export function ObjectsPage(): ReactNode {
  const t = useT();
  const matches = useMatches();
  const section = matches.at(-1)?.staticData.listed ?? 'containers';
  const { kind, title, commands } = LISTED[section];
  const control = useListState(FILTERS);
  const { data, error, refetch, isPlaceholderData } = useQuery(objectsQuery(kind, listQuery(control.state)));
  const { data: overview } = useQuery(reconcileQuery);
  const numbers = overview?.reconcilers.find(({ name }) => name === kind);
  const columns = useMemo<Column<Item>[]>(
    () => [
      { id: 'name', header: t('objects.name'), cell: ({ name }) => name },
      {
        id: 'state',
        header: t('objects.state'),
        cell: ({ conditions }) => <StatusPill state={stateOf(conditions)} />,
      },
      { id: 'why', header: t('objects.why'), cell: ({ conditions }) => <Why conditions={conditions} /> },
      { id: 'created', header: t('objects.created'), cell: (item) => <Time at={item.created_at} />, drop: 1 },
    ],
    [t],
  );
  return (
    <div className="stack">
      <div>
        <h1>{t(title)}</h1>
        {numbers && <small>{t('objects.count', { total: numbers.objects, bad: numbers.not_ready })}</small>}
      </div>
      <div>
        <ListFilters
          control={control}
          filters={[
            {
              name: 'not_ready',
              label: t('objects.not.ready'),
              options: [{ value: 'true', text: t('objects.not.ready') }],
            },
          ]}
        />
        <ServerTable
          label={t(title)}
          columns={columns}
          rows={data?.objects}
          page={data}
          isPrevious={isPlaceholderData}
          rowId={({ uid }) => uid}
          control={control}
          failure={error ? Failure.from(error) : undefined}
          onRetry={() => void refetch()}
          empty={<EmptyState title={t('objects.none')} text={t('objects.none.text')} />}
        />
      </div>
      <CommandLine commands={[...commands]} />
    </div>
  );
}
