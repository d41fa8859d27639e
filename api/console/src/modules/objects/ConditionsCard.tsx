import type { ReactNode } from 'react';

import type { Described } from '../../api/queries/users';
import type { Condition } from '../../api/types';
import { DetailCard } from '../../components/DetailCard';
import { StatusPill } from '../../components/StatusPill';
import { Time } from '../../components/Time';
import { Rich, useT } from '../../i18n';
import { useReasons } from '../../i18n/reasons';
import { shownState } from '../state';
import { visibleText } from '../visible-text';
import { ObjectLink } from './ObjectLink';
import styles from './objects.module.css';
import { WaitedFor } from './WaitedFor';

interface Props {
  parts: Described[];
  /** Reason that the page has explained above. */
  told?: string;
}

/** Conditions of objects, such as a user's parts: why they are as they are, since when, and what they wait for. */
export function ConditionsCard({ parts, told }: Props): ReactNode {
  const t = useT();
  const explain = useReasons();
  const row = (part: Described, condition: Condition): ReactNode => {
    const { title, remedy } = explain(condition.reason);
    const explained = condition.status !== 'True' && condition.reason !== told;
    return (
      <li key={`${part.object} ${condition.type}`}>
        <div>
          <StatusPill state={shownState({ ...condition, waits_for: null })} />
          <small className={`mono ${styles.part ?? ''}`}>
            <ObjectLink object={part.object}>{part.kind}</ObjectLink> · {condition.type}
          </small>
        </div>
        <div>
          <div>{title}</div>
          {explained && condition.message !== '' && <small lang="en">{visibleText(condition.message)}</small>}
          {explained && remedy !== '' && <div>{remedy}</div>}
          {condition.waits_for && <WaitedFor object={condition.waits_for} />}
          <small>
            <Rich
              k="sentence.reason"
              values={{
                reason: condition.reason,
                time: <Time key="time" at={condition.last_transition_at} as="clock" />,
              }}
            />
          </small>
        </div>
      </li>
    );
  };
  return (
    <DetailCard title={t('user.conditions')}>
      <ul className={styles.conditions}>
        {parts.flatMap((part) => part.conditions.map((condition) => row(part, condition)))}
      </ul>
    </DetailCard>
  );
}
