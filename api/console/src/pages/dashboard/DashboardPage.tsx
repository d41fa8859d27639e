import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { modelQuery } from '../../api/queries/model';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import states from '../../components/states.module.css';
import { useT } from '../../i18n';
import { reconcileQuery } from '../../layout/useAttention';

/** Overview: how many agents are ready. */
export function DashboardPage(): ReactNode {
  const t = useT();
  const { data, error, refetch } = useQuery(reconcileQuery);
  const { data: model } = useQuery(modelQuery);
  if (error) return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (data === undefined) return <LoadingState rows={3} />;
  const agents = data.reconcilers.find(({ name }) => name === 'container');
  const { ready = 0, objects = 0, failing = 0 } = agents ?? {};
  return (
    <div className="stack">
      <div className="card">
        <h1>{t('dashboard.ready', { ready, total: objects })}</h1>
        <small>{t('dashboard.failing', { count: failing })}</small>
      </div>
      {model?.configured === false && (
        <section className={states.sentence} data-tone="warn">
          <strong>{t('model.none')}</strong>
          <Link to="/admin/agent">{t('model.none.choose')}</Link>
        </section>
      )}
    </div>
  );
}
