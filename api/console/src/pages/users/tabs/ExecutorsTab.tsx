import { Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { Failure } from '../../../api/failure';
import { ofUserQuery } from '../../../api/queries/users';
import type { Schemas } from '../../../api/types';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorState } from '../../../components/ErrorState';
import { LoadingState } from '../../../components/LoadingState';
import table from '../../../components/table/table.module.css';
import { Time } from '../../../components/Time';
import { useT } from '../../../i18n';
import { DisconnectButton } from '../../../modules/users/DisconnectButton';
import { executorLabel } from '../../../modules/users/executor-label';
import { useUserName } from '../useUserName';

/** Browsers and desktops of a user that are connected now. */
export function ExecutorsTab(): ReactNode {
  const t = useT();
  const name = useUserName();
  const query = { search: name, page: 1, page_size: 200 };
  const { data, error, refetch } = useQuery({
    ...ofUserQuery<Schemas['Executors']>(name, '/api/admin/executors', query),
    staleTime: 0,
  });
  if (error && data === undefined)
    return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (data === undefined) return <LoadingState rows={3} />;
  const own = data.executors.filter(({ username }) => username === name);
  if (own.length === 0) {
    return (
      <div className="card">
        <EmptyState title={t('executors.none')} text={t('executors.none.text')} />
      </div>
    );
  }
  return (
    <div className={table.frame}>
      <Table
        aria-label={t('user.tab.executors')}
        className={table.table}
        verticalSpacing={7}
        horizontalSpacing={10}
      >
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t('executors.what')}</Table.Th>
            <Table.Th>{t('executors.client')}</Table.Th>
            <Table.Th data-drop={2}>{t('user.sessions.address')}</Table.Th>
            <Table.Th>{t('executors.since')}</Table.Th>
            <Table.Th className="num">{t('executors.calls')}</Table.Th>
            <Table.Th>
              <span className="visually-hidden">{t('files.actions')}</span>
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {own.map((one) => (
            <Table.Tr key={one.id}>
              <Table.Td>{t(one.service === 'browser' ? 'executors.browser' : 'executors.desktop')}</Table.Td>
              <Table.Td>
                {executorLabel(one)} <small>{[one.version, one.platform].filter(Boolean).join(' · ')}</small>
              </Table.Td>
              <Table.Td data-drop={2}>{one.address}</Table.Td>
              <Table.Td>
                <Time at={one.connected_at} />
              </Table.Td>
              <Table.Td className="num">{one.calls}</Table.Td>
              <Table.Td className="num">
                <DisconnectButton executor={one} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}
