import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { modelQuery } from '../../api/queries/model';
import { summaryQuery } from '../../api/queries/summary';
import detail from '../../components/detail.module.css';
import { ErrorState } from '../../components/ErrorState';
import { LinkButton } from '../../components/LinkButton';
import { LoadingState } from '../../components/LoadingState';
import states from '../../components/states.module.css';
import { useT } from '../../i18n';
import { countAgents } from './agent-counts';
import { AgentsCard } from './AgentsCard';
import { ChangesCard } from './ChangesCard';
import { LoadCard } from './LoadCard';
import { ProblemsCard } from './ProblemsCard';
import { ServiceCard } from './ServiceCard';

/** Begins the service's warning that a sentence with a link takes the place of. */
const NO_MODEL = 'no model is configured';

/** Overview: how many agents are ready, what is wrong, how the service is, what was changed. */
export function DashboardPage(): ReactNode {
  const t = useT();
  const { data, error, refetch } = useQuery(summaryQuery);
  const { data: model } = useQuery(modelQuery);
  if (error && data === undefined)
    return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (data === undefined) return <LoadingState rows={8} />;
  const counts = countAgents(data.agents);
  const hasModel = model?.configured !== false;
  return (
    <div className="stack">
      {error && <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />}
      <AgentsCard counts={counts} />
      {counts.wanted + counts.stopped === 0 && (
        <div>
          <LinkButton to="/admin/users" variant="filled">
            {t('dashboard.empty.create')}
          </LinkButton>
        </div>
      )}
      {!hasModel && (
        <section className={states.sentence} data-tone="warn">
          <strong>{t('model.none')}</strong>
          <Link to="/admin/agent">{t('model.none.choose')}</Link>
        </section>
      )}
      {data.paused.length > 0 && (
        <section className={states.sentence} data-tone="off">
          <strong>
            {data.paused.includes('*')
              ? t('dashboard.paused.all')
              : t('dashboard.paused', { names: data.paused.join(', ') })}
          </strong>
          <Link to="/admin/reconcile">{t('dashboard.paused.open')}</Link>
        </section>
      )}
      <div className={detail.columns}>
        <div className="stack">
          <ProblemsCard
            problems={data.problems}
            warnings={data.warnings.filter((warning) => hasModel || !warning.startsWith(NO_MODEL))}
          />
          <LoadCard load={data.load} />
          <ChangesCard changes={data.changes} />
        </div>
        <ServiceCard summary={data} />
      </div>
    </div>
  );
}
