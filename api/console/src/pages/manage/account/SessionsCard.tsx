import { Button, Table } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useId } from 'react';

import { post } from '../../../api/client';
import { Failure } from '../../../api/failure';
import { ownSessionsQuery } from '../../../api/queries/own';
import { ErrorState } from '../../../components/ErrorState';
import { LoadingState } from '../../../components/LoadingState';
import { TonePill } from '../../../components/StatusPill';
import tables from '../../../components/table/table.module.css';
import { Time } from '../../../components/Time';
import { useToasts } from '../../../components/toast-store';
import { useT } from '../../../i18n';
import { clientKey } from '../../../modules/account/session-client';

/** Sessions of the account, which can be ended. */
export function SessionsCard(): ReactNode {
  const t = useT();
  const id = useId();
  const client = useQueryClient();
  const toasts = useToasts();
  const { data, error, refetch } = useQuery(ownSessionsQuery);
  const end = useMutation({
    mutationFn: (issued?: number) => post('/api/user/sessions/revoke', { issued_at: issued }),
    onSuccess: (_, issued) =>
      toasts.done(t(issued === undefined ? 'sessions.ended.others' : 'sessions.ended')),
    onError: (thrown) => toasts.fail(t('sessions.end.failed'), Failure.from(thrown)),
    onSettled: () => client.invalidateQueries({ queryKey: ownSessionsQuery.queryKey }),
  });
  const others = data?.sessions.some(({ current }) => !current) === true;
  return (
    <section className="card" aria-labelledby={id}>
      <div className="row">
        <h2 id={id} className="grow">
          {t('sessions.title')}
        </h2>
        {others && (
          <Button size="compact-sm" disabled={end.isPending} onClick={() => end.mutate(undefined)}>
            {t('sessions.end.others')}
          </Button>
        )}
      </div>
      {error && !data && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingState rows={3} />}
      {data && (
        <Table aria-labelledby={id} className={tables.table} horizontalSpacing={0} verticalSpacing={6}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t('sessions.client')}</Table.Th>
              <Table.Th>{t('sessions.address')}</Table.Th>
              <Table.Th data-drop={2}>{t('sessions.begun')}</Table.Th>
              <Table.Th data-drop={1}>{t('sessions.until')}</Table.Th>
              <Table.Th>
                <span className="visually-hidden">{t('files.actions')}</span>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {data.sessions.map((session) => {
              const key = clientKey(session.client);
              return (
                <Table.Tr key={session.issued_at}>
                  <Table.Td>{key ? t(key) : session.client}</Table.Td>
                  <Table.Td>{session.address}</Table.Td>
                  <Table.Td data-drop={2}>
                    <Time at={session.created_at} />
                  </Table.Td>
                  <Table.Td data-drop={1}>
                    <Time at={session.expires_at} />
                  </Table.Td>
                  <Table.Td className="num">
                    {session.current ? (
                      <TonePill tone="ok">{t('sessions.this')}</TonePill>
                    ) : (
                      <Button
                        size="compact-sm"
                        disabled={end.isPending}
                        aria-label={t('table.action', {
                          action: t('sessions.end'),
                          name: `${key ? t(key) : session.client}, ${session.address}`,
                        })}
                        onClick={() => end.mutate(session.issued_at)}
                      >
                        {t('sessions.end')}
                      </Button>
                    )}
                  </Table.Td>
                </Table.Tr>
              );
            })}
          </Table.Tbody>
        </Table>
      )}
    </section>
  );
}
