import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Condition } from '../../api/types';
import states from '../../components/states.module.css';
import { Time } from '../../components/Time';
import { type MessageKey, Rich, useT } from '../../i18n';
import { useReasons } from '../../i18n/reasons';
import { MANUAL } from '../../modules/reasons';
import { shownState } from '../../modules/state';

const HELP: Record<string, MessageKey> = {
  CrashLoop: 'agent.help.log',
  Exited: 'agent.help.log',
  Unresponsive: 'agent.help.log',
  QuotaExceeded: 'agent.help.quota',
  QuotaNearlyUsed: 'agent.help.quota',
  InvalidUserConfig: 'agent.help.config',
  Stopped: 'agent.help.stopped',
  Disabled: 'agent.help.stopped',
  PausedByOperator: 'agent.help.paused',
};

/** Says in a user's words why the agent is not ready, and what the user can do. */
export function AgentSentence({ condition }: { condition: Condition }): ReactNode {
  const t = useT();
  const explain = useReasons();
  const { reason } = condition;
  // Addresses of the engine are the administrator's.
  const message = reason === 'EngineUnavailable' ? '' : condition.message;
  const { tone } = shownState(condition);
  const general = MANUAL.has(reason) ? 'agent.help.admin' : 'agent.help.wait';
  const help = HELP[reason] ?? general;
  return (
    <section className={states.sentence} data-tone={tone === 'unknown' ? 'off' : tone}>
      <strong>{explain(reason).title}</strong>
      <div>
        {t(help)} {help === 'agent.help.log' && <Link to="/manage/log">{t('agent.log.read')}</Link>}
        {help === 'agent.help.quota' && <Link to="/manage/files">{t('agent.files.open')}</Link>}
      </div>
      <small>
        <Rich
          k="sentence.reason"
          values={{ reason, time: <Time at={condition.last_transition_at} as="clock" /> }}
        />
        {message !== '' && ' · '}
        {message !== '' && <span lang="en">{message}</span>}
      </small>
    </section>
  );
}
