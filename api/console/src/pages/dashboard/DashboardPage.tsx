import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { useT } from '../../i18n';
import { reconcileQuery } from '../../layout/useAttention';

/** Overview: how many agents are ready. */
export function DashboardPage(): ReactNode {
  const t = useT();
  const { data, error, refetch } = useQuery(reconcileQuery);
  if (error) return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (data === undefined) return <LoadingState rows={3} />;
  const agents = data.reconcilers.find(({ name }) => name === 'container');
  const { ready = 0, objects = 0, failing = 0 } = agents ?? {};
  return (
    <div className="card">
      <h1>{t('dashboard.ready', { ready, total: objects })}</h1>
      <small>{t('dashboard.failing', { count: failing })}</small>
    </div>
  );
}
