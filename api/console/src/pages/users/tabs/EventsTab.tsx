import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo } from 'react';

import { Failure } from '../../../api/failure';
import { ofUserQuery } from '../../../api/queries/users';
import type { Schemas } from '../../../api/types';
import { EmptyState } from '../../../components/EmptyState';
import { listQuery } from '../../../components/table/list-state';
import { ListFilters } from '../../../components/table/ListFilters';
import { ServerTable } from '../../../components/table/ServerTable';
import { useListState } from '../../../components/table/useListState';
import { useT } from '../../../i18n';
import { eventColumns } from '../../objects/event-columns';
import { useUserName } from '../useUserName';

const FILTERS: readonly string[] = [];

/** Events of a user's objects, newest first. */
export function EventsTab(): ReactNode {
  const t = useT();
  const name = useUserName();
  const control = useListState(FILTERS);
  const query = { user: name, ...listQuery(control.state) };
  const { data, error, refetch, isPlaceholderData } = useQuery(
    ofUserQuery<Schemas['EventList']>(name, '/api/admin/events', query),
  );
  const columns = useMemo(() => eventColumns(t), [t]);
  return (
    <div>
      <ListFilters control={control} searchLabel={t('list.search')} />
      <ServerTable
        label={t('user.tab.events')}
        columns={columns}
        rows={data?.events}
        page={data}
        isPrevious={isPlaceholderData}
        rowId={({ id }) => String(id)}
        control={control}
        failure={error ? Failure.from(error) : undefined}
        onRetry={() => void refetch()}
        empty={<EmptyState title={t('events.none')} text={t('events.none.text')} />}
      />
    </div>
  );
}
