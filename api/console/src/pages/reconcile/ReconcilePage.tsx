import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useMemo, useState } from 'react';

import { Failure } from '../../api/failure';
import { CommandLine } from '../../components/CommandLine';
import { EmptyState } from '../../components/EmptyState';
import { Sentence } from '../../components/Sentence';
import states from '../../components/states.module.css';
import { ServerTable } from '../../components/table/ServerTable';
import { useListState } from '../../components/table/useListState';
import { useT } from '../../i18n';
import { reconcileQuery } from '../../layout/useAttention';
import { sumReconcilers } from '../../modules/objects/reconciler-state';
import { SwitchDialog } from '../../modules/objects/SwitchDialog';
import type { SwitchScope } from '../../modules/objects/switches';
import { readyOf } from '../../modules/state';
import { visibleText } from '../../modules/visible-text';
import { reconcilerColumns } from './reconciler-columns';
import { ServiceCards } from './ServiceCards';

const FILTERS: readonly string[] = [];
const COMMANDS = [
  'agentyard status',
  'agentyard get reconcilers',
  'agentyard get objects --not-ready',
  'agentyard retry --reconciler NAME',
  'agentyard pause --all',
  'agentyard resume --all',
];

interface Asked {
  scope: SwitchScope;
  pauses: boolean;
}

/** The reconcilers: who runs them, how the service is, how many objects are not as desired. */
export function ReconcilePage(): ReactNode {
  const t = useT();
  const control = useListState(FILTERS);
  const { data, error, refetch } = useQuery(reconcileQuery);
  const [asked, setAsked] = useState<Asked>();
  const paused = data?.paused === true;
  const columns = useMemo(
    () => reconcilerColumns(t, paused, (scope, pauses) => setAsked({ scope, pauses })),
    [t, paused],
  );
  const sums = sumReconcilers(data?.reconcilers ?? []);
  const fault = readyOf(data?.conditions ?? []);
  const askAll = (): void => setAsked({ scope: { of: 'all', count: sums.objects }, pauses: !paused });
  return (
    <div className="stack">
      <div className="row">
        <div className="grow">
          <h1>{t('section.reconcile')}</h1>
          {data && (
            <small>
              {t('reconcile.count', { total: sums.objects })} ·{' '}
              <Link to="/admin/reconcile/objects" search={{ not_ready: 'true' } as never}>
                {t('objects.bad', { bad: sums.notReady })}
              </Link>
            </small>
          )}
        </div>
        {data && (
          <Button variant={paused ? 'filled' : 'default'} onClick={askAll}>
            {t(paused ? 'reconcile.resume.all' : 'reconcile.pause.all')}…
          </Button>
        )}
      </div>
      {fault && fault.status !== 'True' && (
        <Sentence condition={{ ...fault, since: fault.last_transition_at }} />
      )}
      {paused && (
        <section className={states.sentence} data-tone="off">
          <strong>{t('reconcile.paused')}</strong>
          <span>{t('reconcile.paused.text')}</span>
        </section>
      )}
      {data?.warnings.map((warning) => (
        <section key={warning} className={states.sentence} data-tone="warn">
          <span lang="en">{visibleText(warning)}</span>
        </section>
      ))}
      {data && <ServiceCards overview={data} />}
      <ServerTable
        label={t('reconcile.reconcilers')}
        columns={columns}
        rows={data?.reconcilers}
        page={undefined}
        rowId={({ name }) => name}
        control={control}
        failure={error ? Failure.from(error) : undefined}
        onRetry={() => void refetch()}
        empty={<EmptyState title={t('objects.none')} />}
      />
      <CommandLine commands={COMMANDS} />
      {asked && <SwitchDialog {...asked} onClose={() => setAsked(undefined)} />}
    </div>
  );
}
