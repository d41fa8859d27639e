import { Button, Table } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import { ownCookiesQuery } from '../../api/queries/own';
import { EmptyState } from '../../components/EmptyState';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import tables from '../../components/table/table.module.css';
import { Time } from '../../components/Time';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import { SubPage } from './SubPage';

/** Sites whose cookies the user's agent was given. */
export function CookiesPage(): ReactNode {
  const t = useT();
  const client = useQueryClient();
  const toasts = useToasts();
  const { data, error, refetch } = useQuery(ownCookiesQuery);
  const remove = useMutation({
    mutationFn: (domain: string) => post('/api/user/cookies/delete', { domain, wait: 20 }),
    onSuccess: (_, domain) => toasts.done(t('cookies.removed', { site: domain })),
    onError: (thrown) => toasts.fail(t('cookies.remove.failed'), Failure.from(thrown)),
    onSettled: () => client.invalidateQueries({ queryKey: ownCookiesQuery.queryKey }),
  });
  return (
    <SubPage title={t('cookies.title')} text={t('cookies.text')}>
      {error && !data && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
      {(data !== undefined || !error) && (
        <div className={tables.frame}>
          {data === undefined && <LoadingState rows={3} />}
          {data?.cookies.length === 0 && (
            <EmptyState title={t('cookies.none')} text={t('cookies.none.text')} />
          )}
          {data && data.cookies.length > 0 && (
            <Table aria-label={t('cookies.title')} className={tables.table} horizontalSpacing={10}>
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>{t('cookies.site')}</Table.Th>
                  <Table.Th>{t('cookies.since')}</Table.Th>
                  <Table.Th>
                    <span className="visually-hidden">{t('files.actions')}</span>
                  </Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {data.cookies.map(({ domain, updated_at: at }) => (
                  <Table.Tr key={domain}>
                    <Table.Td>
                      {visibleText(domain.replace(/^\./, ''))}{' '}
                      {domain.startsWith('.') && <small>{t('cookies.subdomains')}</small>}
                    </Table.Td>
                    <Table.Td>
                      <Time at={at} />
                    </Table.Td>
                    <Table.Td className="num">
                      <Button
                        size="compact-sm"
                        color="bad"
                        disabled={remove.isPending}
                        aria-label={t('cookies.remove.site', { site: domain })}
                        onClick={() => remove.mutate(domain)}
                      >
                        {t('cookies.remove')}
                      </Button>
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          )}
        </div>
      )}
    </SubPage>
  );
}
