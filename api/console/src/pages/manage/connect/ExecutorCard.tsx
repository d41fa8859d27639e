import { Button } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useId } from 'react';

import { post } from '../../../api/client';
import { Failure } from '../../../api/failure';
import { ownExecutorsQuery } from '../../../api/queries/own';
import { ErrorState } from '../../../components/ErrorState';
import { LoadingState } from '../../../components/LoadingState';
import { TonePill } from '../../../components/StatusPill';
import { Time } from '../../../components/Time';
import { useToasts } from '../../../components/toast-store';
import { Rich, useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import styles from '../manage.module.css';
import { describeExecutor, type Kind, SERVICES } from './executors';

const TITLES = { browser: 'connect.browser', desktop: 'connect.desktop' } as const;
const HOW = { browser: 'connect.how.browser', desktop: 'connect.how.desktop' } as const;

/** The user's connected browser or desktop, with a way to disconnect it or to connect one. */
export function ExecutorCard({ kind, withHelp = true }: { kind: Kind; withHelp?: boolean }): ReactNode {
  const t = useT();
  const id = useId();
  const client = useQueryClient();
  const toasts = useToasts();
  const { data, error, refetch } = useQuery(ownExecutorsQuery);
  const mine = data?.executors.filter(({ service }) => service === SERVICES[kind]);
  const disconnect = useMutation({
    mutationFn: (connection: number) => post('/api/user/executors/disconnect', { kind, id: connection }),
    onSuccess: () => toasts.done(t('connect.disconnected')),
    onError: (thrown) => toasts.fail(t('connect.disconnect.failed'), Failure.from(thrown)),
    onSettled: () => client.invalidateQueries({ queryKey: ownExecutorsQuery.queryKey }),
  });
  return (
    <section className={`card ${styles.section ?? ''}`} aria-labelledby={id}>
      <h2 id={id}>{t(TITLES[kind])}</h2>
      {error && !data && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
      {!data && !error && <LoadingState rows={2} />}
      {mine && mine.length > 0 && (
        <ul className={styles.executors}>
          {mine.map((executor) => {
            const { name, system } = describeExecutor(executor);
            const shown = visibleText(name);
            return (
              <li key={executor.id} className={styles.section}>
                <span>
                  <TonePill tone="ok">{t('connect.connected')}</TonePill>{' '}
                  <small>
                    {system === '' ? shown : t('connect.on', { name: shown, system: visibleText(system) })}
                    {' · '}
                    <Rich k="agent.since" values={{ time: <Time at={executor.connected_at} as="clock" /> }} />
                    {executor.calls > 0 && ` · ${t('connect.calls', { count: executor.calls })}`}
                  </small>
                </span>
                <Button
                  disabled={disconnect.isPending}
                  aria-label={t('connect.disconnect.name', { name: shown })}
                  onClick={() => disconnect.mutate(executor.id)}
                >
                  {t('connect.disconnect')}
                </Button>
              </li>
            );
          })}
        </ul>
      )}
      {mine?.length === 0 && <TonePill tone="off">{t('connect.not.connected')}</TonePill>}
      {withHelp && mine?.length === 0 && (
        <Link to="/manage/connect" hash={kind}>
          {t(HOW[kind])}
        </Link>
      )}
    </section>
  );
}
