import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useId, useMemo } from 'react';

import { Failure } from '../../api/failure';
import { groupMembersQuery } from '../../api/queries/groups';
import { EmptyState } from '../../components/EmptyState';
import { listQuery } from '../../components/table/list-state';
import { ListFilters } from '../../components/table/ListFilters';
import { type Column, ServerTable } from '../../components/table/ServerTable';
import { useListState } from '../../components/table/useListState';
import { useT } from '../../i18n';
import styles from '../../components/detail.module.css';
import { InheritedMembers } from './InheritedMembers';

const FILTERS: readonly string[] = [];

/** Members of a group: its own, with pages and search, and those of the groups in it. */
export function GroupMembers({ name }: { name: string }): ReactNode {
  const t = useT();
  const id = useId();
  const control = useListState(FILTERS);
  const { data, error, refetch, isPlaceholderData } = useQuery(
    groupMembersQuery(name, listQuery(control.state)),
  );
  const columns = useMemo<Column<{ username: string }>[]>(
    () => [
      {
        id: 'user',
        header: t('group.direct'),
        cell: ({ username }) => (
          <Link to="/admin/users/$name" params={{ name: username }}>
            {username}
          </Link>
        ),
      },
    ],
    [t],
  );
  const rows = useMemo(() => data?.members.map((username) => ({ username })), [data]);
  return (
    <section aria-labelledby={id}>
      <h2 id={id} className={styles.heading}>
        {t('objects.members')}
      </h2>
      <ListFilters control={control} />
      <ServerTable
        label={t('group.direct')}
        columns={columns}
        rows={rows}
        page={data}
        isPrevious={isPlaceholderData}
        rowId={({ username }) => username}
        control={control}
        failure={error ? Failure.from(error) : undefined}
        onRetry={() => void refetch()}
        empty={<EmptyState title={t('group.direct.none')} text={t('group.direct.none.text')} />}
      />
      <InheritedMembers members={data?.inherited_members ?? []} words={control.state.search} />
    </section>
  );
}
