import type { ReactNode } from 'react';

import { Actor } from '../../components/Actor';
import { Sentence } from '../../components/Sentence';
import { Time } from '../../components/Time';
import { Rich } from '../../i18n';
import type { Reason } from '../../modules/reasons';
import type { UserDetail } from './useUserDetail';

const REASONS: Record<string, Reason> = { disabled: 'Disabled', stopped: 'Stopped', missing: 'Disabled' };

/** Problem of a user with its remedy and next attempt, or the reason that nothing runs. */
export function UserSentence({ detail }: { detail: UserDetail }): ReactNode {
  const { user, worst } = detail;
  const { health, standstill } = user ?? {};
  if (health && health.status !== 'True') {
    const { percent, waits_for } = worst?.conditions.find(({ reason }) => reason === health.reason) ?? {};
    return (
      <Sentence
        condition={{ ...health, percent, waits_for }}
        failures={worst?.failures}
        nextAttempt={worst?.next_attempt_at}
      />
    );
  }
  if (!standstill) return null;
  const { reason, message, since, by } = standstill;
  const author = by && since && (
    <small>
      <Rich
        k="users.why.by"
        values={{ by: <Actor key="by" name={by} />, time: <Time key="time" at={since} /> }}
      />
    </small>
  );
  return (
    <Sentence
      condition={{ status: 'True', reason: REASONS[reason] ?? 'Stopped', message: by ? '' : message, since }}
      action={author}
    />
  );
}
