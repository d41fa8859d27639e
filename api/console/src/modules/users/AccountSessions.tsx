import { Button } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useMemo, useState } from 'react';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import { keys } from '../../api/keys';
import { ofUserQuery } from '../../api/queries/users';
import type { Schemas } from '../../api/types';
import { ActionPreview } from '../../components/ActionPreview';
import { EmptyState } from '../../components/EmptyState';
import { listQuery } from '../../components/table/list-state';
import { type Column, ServerTable } from '../../components/table/ServerTable';
import { useListState } from '../../components/table/useListState';
import { Time } from '../../components/Time';
import { useToasts } from '../../components/toast-store';
import { type MessageKey, useT } from '../../i18n';
import { SessionClient } from '../account/SessionClient';
import styles from './users.module.css';

type Item = Schemas['SessionItem'];

const FILTERS: readonly string[] = [];

interface Props {
  /** Name of the account, of a user or of an administrator. */
  name: string;
  /** Effect of ending all sessions. */
  effect: MessageKey;
}

/** Where an account is signed in, and a way to end it. */
export function AccountSessions({ name, effect }: Props): ReactNode {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  const control = useListState(FILTERS);
  const [asking, setAsking] = useState(false);
  const query = { username: name, ...listQuery(control.state) };
  const { data, error, refetch, isPlaceholderData } = useQuery(
    ofUserQuery<Schemas['Sessions']>(name, '/api/admin/users/sessions', query),
  );
  const columns = useMemo<Column<Item>[]>(
    () => [
      {
        id: 'client',
        header: t('user.sessions.client'),
        cell: ({ client: by, current }) => <SessionClient client={by} isCurrent={current} />,
      },
      { id: 'address', header: t('user.sessions.address'), cell: ({ address }) => address },
      { id: 'since', header: t('user.sessions.since'), cell: (item) => <Time at={item.created_at} /> },
      {
        id: 'until',
        header: t('user.sessions.until'),
        drop: 1,
        cell: (item) => <Time at={item.expires_at} />,
      },
    ],
    [t],
  );
  const revoke = async (): Promise<void> => {
    const body = { username: name };
    const { ended } = await post<Schemas['Ended']>('/api/admin/users/sessions/revoke', body);
    toasts.done(t('user.sessions.ended', { count: ended }));
    await client.invalidateQueries({ queryKey: keys.object('user', name) });
  };
  const total = data?.total ?? 0;
  return (
    <div>
      {total > 0 && (
        <div className={styles.above}>
          <Button onClick={() => setAsking(true)}>{t('user.sessions.end')}…</Button>
        </div>
      )}
      <ServerTable
        label={t('user.tab.sessions')}
        columns={columns}
        rows={data?.sessions}
        page={data}
        isPrevious={isPlaceholderData}
        rowId={({ issued_at: issued, address, client: by }) => `${issued} ${address} ${by}`}
        control={control}
        failure={error ? Failure.from(error) : undefined}
        onRetry={() => void refetch()}
        empty={<EmptyState title={t('user.sessions.none')} text={t('user.sessions.none.text', { name })} />}
      />
      <ActionPreview
        opened={asking}
        onClose={() => setAsking(false)}
        title={t('user.sessions.end.title', { name })}
        previewKey={['sessions', name]}
        preview={() => Promise.resolve(true)}
        verb={() => t('user.sessions.end.verb', { count: total })}
        act={revoke}
      >
        {() => <p>{t(effect)}</p>}
      </ActionPreview>
    </div>
  );
}
