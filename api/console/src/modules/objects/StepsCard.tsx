import type { ReactNode } from 'react';

import type { Described } from '../../api/queries/users';
import { DetailCard } from '../../components/DetailCard';
import { type Step, Steps } from '../../components/Steps';
import { Time } from '../../components/Time';
import { Rich, useT } from '../../i18n';
import { readyOf, shownState } from '../state';
import { visibleText } from '../visible-text';
import styles from './objects.module.css';

/** The steps of the next reconciliation, and when it is. */
export function StepsCard({ object }: { object: Described }): ReactNode {
  const t = useT();
  const { plan, next: tried, next_attempt_at: next, next_look_at: look } = object;
  const ready = readyOf(object.conditions);
  const isWorking = ready !== undefined && shownState(ready).tone === 'wait';
  const when = next ?? look;
  const actions = plan && 'actions' in plan ? plan.actions : [];
  const steps = actions.map((text, at): Step => ({
    text: visibleText(text),
    lang: 'en',
    state: isWorking && at === 0 ? 'now' : 'next',
  }));
  return (
    <DetailCard title={t('user.next')}>
      {plan && 'error' in plan && (
        <p>
          {t('user.next.unknown')} <span lang="en">{plan.error}</span>
        </p>
      )}
      {plan && 'actions' in plan && steps.length === 0 && (
        <p>{t(ready?.status === 'True' ? 'user.next.nothing' : 'user.next.later')}</p>
      )}
      {!plan && <p className="dim">{t('user.next.none')}</p>}
      {steps.length > 0 && <Steps steps={steps} />}
      {when && (
        <div className={styles.next}>
          <small>
            <Rich k="sentence.next" values={{ when: <Time key="when" at={when} /> }} />
          </small>
        </div>
      )}
      {tried && (
        <small lang="en" className={styles.next}>
          {visibleText(tried)}
        </small>
      )}
    </DetailCard>
  );
}
