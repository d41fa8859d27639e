import { useQuery } from '@tanstack/react-query';
import { Navigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { initStatusQuery } from '../../api/queries/own';
import { ErrorState } from '../../components/ErrorState';
import { LoadingState } from '../../components/LoadingState';
import { StatusPill } from '../../components/StatusPill';
import { type Step, Steps } from '../../components/Steps';
import { useT } from '../../i18n';
import { MANUAL } from '../../modules/reasons';
import { readyOf, shownState } from '../../modules/state';
import { AgentSentence } from '../manage/AgentSentence';
import styles from './initializing.module.css';

/** Shown while the first container of a user starts: what is done, what is under way. */
export function InitializingPage(): ReactNode {
  const t = useT();
  const { data, error, refetch } = useQuery(initStatusQuery);
  if (error && data === undefined)
    return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (data === undefined) {
    return (
      <div className="card">
        <LoadingState rows={4} />
      </div>
    );
  }
  if (data.ready) return <Navigate to="/manage" replace />;
  const ready = readyOf(data.conditions);
  const stuck = ready !== undefined && MANUAL.has(ready.reason);
  const done = [data.has_config, data.image_ready, data.ready];
  const now = done.indexOf(false);
  const texts = [t('initializing.config'), t('initializing.image'), t('initializing.start')];
  const steps = texts.map((text, at): Step => {
    if (done[at] === true) return { text, state: 'done' };
    if (at !== now) return { text, state: 'next' };
    return { text, state: stuck ? 'failed' : 'now' };
  });
  const actions = data.plan?.actions ?? [];
  return (
    <>
      <div className={`card ${styles.card ?? ''}`} aria-live="polite">
        <div className="row">
          <h1 className="grow">{t('initializing.title')}</h1>
          {ready && <StatusPill state={shownState(ready)} />}
        </div>
        <small>{t(stuck ? 'initializing.stuck' : 'initializing.text')}</small>
        <Steps steps={steps} />
        {actions.length > 0 && (
          <details>
            <summary>{t('initializing.plan')}</summary>
            <ol className={styles.plan} lang="en">
              {actions.map((action) => (
                <li key={action}>{action}</li>
              ))}
            </ol>
          </details>
        )}
      </div>
      {ready && <AgentSentence condition={ready} />}
    </>
  );
}
