import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useId, useMemo } from 'react';

import { Failure } from '../../api/failure';
import { authValuesQuery, whitelistQuery } from '../../api/queries/auth';
import styles from '../../components/detail.module.css';
import { EmptyState } from '../../components/EmptyState';
import { listQuery } from '../../components/table/list-state';
import { ListFilters } from '../../components/table/ListFilters';
import { type Column, ServerTable } from '../../components/table/ServerTable';
import { useListState } from '../../components/table/useListState';
import { useT } from '../../i18n';

const FILTERS: readonly string[] = [];

/** Names that may sign in while the whitelist is enabled. */
export function Whitelist(): ReactNode {
  const t = useT();
  const id = useId();
  const control = useListState(FILTERS);
  const { data, error, refetch, isPlaceholderData } = useQuery(whitelistQuery(listQuery(control.state)));
  const { data: values } = useQuery(authValuesQuery);
  const isOn = values?.ldap?.whitelist_enabled === true || values?.oidc?.whitelist_enabled === true;
  const columns = useMemo<Column<{ username: string }>[]>(
    () => [
      {
        id: 'user',
        header: t('objects.user'),
        cell: ({ username: name }) => (
          <Link to="/admin/users/$name" params={{ name }}>
            {name}
          </Link>
        ),
      },
    ],
    [t],
  );
  const rows = useMemo(() => data?.users.map((username) => ({ username })), [data]);
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{t('auth.whitelist')}</h2>
      <p className={`dim ${styles.heading ?? ''}`}>{t(isOn ? 'auth.whitelist.on' : 'auth.whitelist.off')}</p>
      <ListFilters control={control} />
      <ServerTable
        label={t('auth.whitelist')}
        columns={columns}
        rows={rows}
        page={data}
        isPrevious={isPlaceholderData}
        rowId={({ username }) => username}
        control={control}
        failure={error ? Failure.from(error) : undefined}
        onRetry={() => void refetch()}
        empty={<EmptyState title={t('auth.whitelist.none')} text={t('auth.whitelist.none.text')} />}
      />
    </section>
  );
}
