import { Button } from '@mantine/core';
import type { ReactNode } from 'react';

import { Failure } from '../api/failure';
import { Bytes } from '../components/Bytes';
import { EmptyState } from '../components/EmptyState';
import { ErrorState } from '../components/ErrorState';
import { LoadingState } from '../components/LoadingState';
import { Sentence } from '../components/Sentence';
import { StatusPill } from '../components/StatusPill';
import { Time } from '../components/Time';
import type { Reason } from '../modules/reasons';
import { type Observed, shownState } from '../modules/state';

const observed = (status: Observed['status'], reason: Reason, more: Partial<Observed> = {}): Observed => ({
  status,
  reason,
  ...more,
});

const STATES: Observed[] = [
  observed('True', 'Running'),
  observed('False', 'Progressing'),
  observed('False', 'ImagePulling', { percent: 64 }),
  observed('False', 'ConfigPending', { waits_for: 'engine/local' }),
  observed('False', 'ImagePullFailed'),
  observed('False', 'HostOpen'),
  observed('False', 'MassRemoval'),
  observed('True', 'Stopped'),
  observed('True', 'Disabled'),
  observed('False', 'PausedByOperator'),
  observed('False', 'Terminating'),
  observed('Unknown', 'EngineUnavailable'),
];

const since = new Date(Date.now() - 180_000).toISOString();
const soon = new Date(Date.now() + 42_000).toISOString();

/** States, sentences, and what stands in place of content. */
export function StateSamples(): ReactNode {
  return (
    <>
      <div className="card row">
        {STATES.map((state) => (
          <StatusPill key={state.reason} state={shownState(state)} />
        ))}
      </div>
      <Sentence
        condition={{
          ...observed('False', 'ImagePullFailed', { since }),
          message: 'registry.example.org answered 401 for agent:1.3',
        }}
        failures={4}
        nextAttempt={soon}
      />
      <Sentence condition={{ ...observed('False', 'ImagePulling', { since, percent: 64 }), message: '' }} />
      <Sentence
        condition={{ ...observed('False', 'MassRemoval', { since }), message: '14 of 30 users are missing' }}
        action={<Button>Review</Button>}
      />
      <Sentence
        condition={{ ...observed('Unknown', 'EngineUnavailable', { since }), message: 'connection refused' }}
      />
      <ErrorState
        failure={
          new Failure(503, 'engine_unavailable', 'the container engine cannot be reached', 5, {}, '3f2a')
        }
        onRetry={() => undefined}
      />
      <ErrorState failure={new Failure(0, 'network', '')} onRetry={() => undefined} />
      <ErrorState failure={new Failure(418, 'teapot', 'the server is a <b>teapot</b>')} />
      <div className="card">
        <EmptyState
          title="No groups yet"
          text="Groups give their members skills."
          action={<Button variant="filled">Create group</Button>}
        />
      </div>
      <div className="card">
        <LoadingState />
      </div>
      <div className="card row">
        <Time at={since} />
        <Time at={since} as="clock" />
        <Time at={since} as="exact" />
        <Bytes value={1_288_490_188} />
        <Bytes value={356_515_840} />
        <Bytes value={12} />
      </div>
    </>
  );
}
