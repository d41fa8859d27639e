import type { ReactNode } from 'react';

import { Rich, useT } from '../i18n';
import { useReasons } from '../i18n/reasons';
import type { Observed } from '../modules/state';
import { shownState } from '../modules/state';
import { visibleText } from '../modules/visible-text';
import styles from './states.module.css';
import { Time } from './Time';

interface Props {
  condition: Observed & { message: string; remedy?: string };
  failures?: number;
  nextAttempt?: string | null;
  /** Buttons that help. */
  action?: ReactNode;
}

/** Problem of an object with its remedy, and small: the reason code, its begin, the next attempt. */
export function Sentence({ condition, failures = 0, nextAttempt, action }: Props): ReactNode {
  const t = useT();
  const explain = useReasons();
  const { tone } = shownState(condition);
  const { title, remedy } = explain(condition.reason);
  const { since } = condition;
  return (
    <section className={styles.sentence} data-tone={tone === 'unknown' ? 'off' : tone}>
      <div>
        <strong>{title}</strong>
        {condition.message !== '' && (
          <>
            {': '}
            <span lang="en">{visibleText(condition.message)}</span>
          </>
        )}
      </div>
      {remedy !== '' && <div>{remedy}</div>}
      {remedy === '' && condition.remedy ? <div lang="en">{condition.remedy}</div> : null}
      <small>
        {since ? (
          <Rich
            k="sentence.reason"
            values={{ reason: condition.reason, time: <Time at={since} as="clock" /> }}
          />
        ) : (
          condition.reason
        )}
        {failures > 0 && ` · ${t('sentence.failures', { count: failures })}`}
        {nextAttempt && ' · '}
        {nextAttempt && <Rich k="sentence.next" values={{ when: <Time at={nextAttempt} /> }} />}
      </small>
      {action}
    </section>
  );
}
