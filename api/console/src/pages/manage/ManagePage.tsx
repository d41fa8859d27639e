import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { initStatusQuery } from '../../api/queries/own';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { Sentence } from '../../components/Sentence';
import { StatusPill } from '../../components/StatusPill';
import { useReasons } from '../../i18n/reasons';
import { readyOf, shownState } from '../../modules/state';

/** The user's page: the state of the own agent. */
export function ManagePage(): ReactNode {
  const explain = useReasons();
  const { data, error, refetch } = useQuery(initStatusQuery);
  if (error) return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (data === undefined) return <LoadingState rows={3} />;
  const ready = readyOf(data.conditions);
  if (ready === undefined) return <LoadingState rows={3} />;
  return (
    <>
      <div className="card row">
        <h1 className="grow">{explain(ready.reason).title}</h1>
        <StatusPill state={shownState(ready)} />
      </div>
      {ready.status !== 'True' && <Sentence condition={{ ...ready, since: ready.last_transition_at }} />}
    </>
  );
}
