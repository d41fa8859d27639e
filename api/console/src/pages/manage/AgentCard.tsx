import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { Failure } from '../../api/failure';
import { ownAgentQuery } from '../../api/queries/own';
import { ErrorState } from '../../components/ErrorState';
import { LinkButton } from '../../components/LinkButton';
import { LoadingState } from '../../components/LoadingState';
import { StatusPill } from '../../components/StatusPill';
import { type MessageKey, useT } from '../../i18n';
import { readyOf, shownState, type ShownState, stateOf } from '../../modules/state';
import { AgentFacts } from './AgentFacts';
import { AgentSentence } from './AgentSentence';
import styles from './manage.module.css';
import { useRestart } from './useRestart';

const TITLES: Record<ShownState['tone'], MessageKey> = {
  ok: 'agent.running',
  wait: 'agent.starting',
  warn: 'agent.degraded',
  bad: 'agent.failed',
  off: 'agent.stopped',
  unknown: 'agent.unknown',
};

/** State of the user's agent in one sentence, with restart and log. */
export function AgentCard(): ReactNode {
  const t = useT();
  const { data, error, refetch } = useQuery(ownAgentQuery);
  const restart = useRestart();
  if (error && data === undefined)
    return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (data === undefined) {
    return (
      <div className="card">
        <LoadingState rows={2} />
      </div>
    );
  }
  const ready = readyOf(data.conditions);
  const state = ready === undefined ? stateOf([]) : shownState(ready);
  const stopped = state.tone === 'off';
  return (
    <>
      <section className="card row">
        <div className={styles.agent}>
          <h1>{t(TITLES[state.tone])}</h1>
          <AgentFacts agent={data} running={state.tone === 'ok' || state.tone === 'warn'} />
        </div>
        <StatusPill state={state} />
        <Button
          disabled={stopped || restart.isPending}
          title={stopped ? t('agent.restart.stopped') : undefined}
          onClick={() => restart.mutate()}
        >
          {restart.isPending ? t('agent.restarting') : t('agent.restart')}
        </Button>
        <LinkButton to="/manage/log">{t('agent.log')}</LinkButton>
      </section>
      {ready && state.tone !== 'ok' && <AgentSentence condition={ready} />}
    </>
  );
}
