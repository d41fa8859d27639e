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
import { auditColumns } from '../../objects/audit-columns';
import { useUserName } from '../useUserName';

const FILTERS = ['by'] as const;

/** Audit entries about a user and by the user, newest first. */
export function AuditTab(): ReactNode {
  const t = useT();
  const name = useUserName();
  const control = useListState(FILTERS);
  const { by, ...list } = listQuery(control.state);
  const query = by === undefined ? { user: name, ...list } : { actor: name, ...list };
  const { data, error, refetch, isPlaceholderData } = useQuery(
    ofUserQuery<Schemas['AuditEntries']>(name, '/api/admin/audit', query),
  );
  const columns = useMemo(() => auditColumns(t), [t]);
  const own = t('audit.by', { name });
  return (
    <div>
      <ListFilters
        control={control}
        searchLabel={t('list.search')}
        filters={[{ name: 'by', label: own, options: [{ value: 'user', text: own }] }]}
      />
      <ServerTable
        label={t('user.tab.audit')}
        columns={columns}
        rows={data?.entries}
        page={data}
        isPrevious={isPlaceholderData}
        rowId={({ seq }) => String(seq)}
        control={control}
        failure={error ? Failure.from(error) : undefined}
        onRetry={() => void refetch()}
        empty={<EmptyState title={t('audit.none')} text={t('audit.none.text')} />}
      />
    </div>
  );
}
