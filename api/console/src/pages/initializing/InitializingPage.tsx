import { useQuery } from '@tanstack/react-query';
import { Navigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { initStatusQuery } from '../../api/queries/own';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { Sentence } from '../../components/Sentence';
import { Steps } from '../../components/Steps';
import { useT } from '../../i18n';
import { readyOf } from '../../modules/state';

/** Shown while the first container of a user starts: what is done, what is under way. */
export function InitializingPage(): ReactNode {
  const t = useT();
  const { data, error, refetch } = useQuery(initStatusQuery);
  if (error) return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (data === undefined) return <LoadingState rows={4} />;
  if (data.ready) return <Navigate to="/manage" replace />;
  const done = [data.has_config, data.image_ready, data.ready];
  const now = done.indexOf(false);
  const texts = [t('initializing.config'), t('initializing.image'), t('initializing.start')];
  const steps = texts.map((text, at) => {
    const waits = at === now ? ('now' as const) : ('next' as const);
    return { text, state: done[at] === true ? ('done' as const) : waits };
  });
  const ready = readyOf(data.conditions);
  return (
    <>
      <div className="card stack">
        <div>
          <h1>{t('initializing.title')}</h1>
          <small>{t('initializing.text')}</small>
        </div>
        <Steps steps={steps} />
      </div>
      {ready && <Sentence condition={{ ...ready, since: ready.last_transition_at }} />}
    </>
  );
}
