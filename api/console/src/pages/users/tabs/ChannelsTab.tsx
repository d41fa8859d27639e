import { Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { Failure } from '../../../api/failure';
import { ofUserQuery } from '../../../api/queries/users';
import type { Schemas } from '../../../api/types';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorState } from '../../../components/ErrorState';
import { LoadingState } from '../../../components/LoadingState';
import { TonePill } from '../../../components/StatusPill';
import table from '../../../components/table/table.module.css';
import { useT } from '../../../i18n';
import { useUserName } from '../useUserName';

/** Channels that a user has set; their values are never shown. */
export function ChannelsTab(): ReactNode {
  const t = useT();
  const name = useUserName();
  const { data, error, refetch } = useQuery(
    ofUserQuery<Schemas['UserChannels']>(name, '/api/admin/users/channels', { username: name }),
  );
  if (error && data === undefined)
    return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (data === undefined) return <LoadingState rows={3} />;
  if (data.channels.length === 0) {
    return (
      <div className="card">
        <EmptyState title={t('user.channels.none')} text={t('user.channels.none.text')} />
      </div>
    );
  }
  return (
    <div className="stack">
      <div className={table.frame}>
        <Table
          aria-label={t('user.tab.channels')}
          className={table.table}
          verticalSpacing={7}
          horizontalSpacing={10}
        >
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t('user.channels.name')}</Table.Th>
              <Table.Th>{t('users.state')}</Table.Th>
              <Table.Th>{t('user.channels.values')}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {data.channels.map(({ key, label, known, enabled, configured }) => (
              <Table.Tr key={key}>
                <Table.Td>
                  {label} <small className="mono">{key}</small>
                </Table.Td>
                <Table.Td>
                  {known ? (
                    <TonePill tone={enabled ? 'ok' : 'off'}>
                      {t(enabled ? 'user.channels.on' : 'user.channels.off')}
                    </TonePill>
                  ) : (
                    <TonePill tone="warn">{t('user.channels.unknown')}</TonePill>
                  )}
                </Table.Td>
                <Table.Td>{t(configured ? 'user.channels.complete' : 'user.channels.incomplete')}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
      <small>{t('user.channels.note')}</small>
    </div>
  );
}
