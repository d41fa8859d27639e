import { Button, Table } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useId, useState } from 'react';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import { keys } from '../../api/keys';
import { apiTokensQuery } from '../../api/queries/api-tokens';
import { ActionPreview } from '../../components/ActionPreview';
import { EmptyState } from '../../components/EmptyState';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { TonePill } from '../../components/StatusPill';
import { Time } from '../../components/Time';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';
import { CreateApiToken } from './CreateApiToken';
import styles from './superadmins.module.css';
import { ROLE_LABELS } from './token-roles';

/** Tokens with which programs administer the service. */
export function ApiTokens(): ReactNode {
  const t = useT();
  const id = useId();
  const toasts = useToasts();
  const client = useQueryClient();
  const { data, error, refetch } = useQuery(apiTokensQuery);
  const [creating, setCreating] = useState(false);
  const [revoked, setRevoked] = useState<string>();
  const revoke = async (): Promise<void> => {
    await post('/api/admin/api-tokens/revoke', { name: revoked });
    toasts.done(t('tokens.revoked', { name: revoked ?? '' }));
    await client.invalidateQueries({ queryKey: keys.list('api-token') });
  };
  return (
    <section className="stack" aria-labelledby={id}>
      <div className="row">
        <h2 id={id} className="grow">
          {t('tokens.title')}
        </h2>
        <Button onClick={() => setCreating(true)}>{t('tokens.create')}</Button>
      </div>
      <p className="dim">{t('tokens.text')}</p>
      {error && !data && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
      {!error && !data && <LoadingState rows={2} />}
      {data?.tokens.length === 0 && <EmptyState title={t('tokens.none')} />}
      {data && data.tokens.length > 0 && (
        <Table aria-labelledby={id}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t('objects.name')}</Table.Th>
              <Table.Th>{t('tokens.role')}</Table.Th>
              <Table.Th>{t('tokens.expires')}</Table.Th>
              <Table.Th>{t('tokens.used')}</Table.Th>
              <Table.Th>{t('tokens.creator')}</Table.Th>
              <Table.Th>
                <span className="visually-hidden">{t('files.actions')}</span>
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {data.tokens.map((token) => (
              <Table.Tr key={token.name}>
                <Table.Td>{token.name}</Table.Td>
                <Table.Td>{t(ROLE_LABELS[token.role])}</Table.Td>
                <Table.Td>
                  {token.expired ? (
                    <TonePill tone="warn">{t('tokens.expired')}</TonePill>
                  ) : (
                    <Time at={token.expires_at} />
                  )}
                </Table.Td>
                <Table.Td>
                  {token.last_used_at ? (
                    <Time at={token.last_used_at} />
                  ) : (
                    <span className="dim">{t('users.never')}</span>
                  )}
                </Table.Td>
                <Table.Td>{token.created_by}</Table.Td>
                <Table.Td>
                  <div className={styles.actions}>
                    <Button
                      size="compact-sm"
                      color="bad"
                      aria-label={t('table.action', { action: t('tokens.revoke'), name: token.name })}
                      onClick={() => setRevoked(token.name)}
                    >
                      {t('tokens.revoke')}…
                    </Button>
                  </div>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {creating && <CreateApiToken onClose={() => setCreating(false)} />}
      <ActionPreview
        opened={revoked !== undefined}
        onClose={() => setRevoked(undefined)}
        title={t('tokens.revoke.title', { name: revoked ?? '' })}
        previewKey={['revoke-api-token', revoked]}
        preview={() => Promise.resolve(true)}
        verb={() => t('tokens.revoke')}
        danger
        act={revoke}
      >
        {() => <p>{t('tokens.revoke.text')}</p>}
      </ActionPreview>
    </section>
  );
}
