import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import { TonePill } from '../../components/StatusPill';
import { Time } from '../../components/Time';
import { Rich, useT } from '../../i18n';
import { useReasons } from '../../i18n/reasons';
import { visibleText } from '../../modules/visible-text';
import styles from './reconcile.module.css';

/** Parts of the service: those with a fault first, each with cause and remedy, then the names of the rest. */
export function PartList({ parts }: { parts: Schemas['PartHealth'][] }): ReactNode {
  const t = useT();
  const explain = useReasons();
  const sound = parts.filter(({ fault }) => !fault).map(({ part }) => part);
  return (
    <>
      <ul className={styles.parts}>
        {parts.map(({ part, fault }) => {
          if (!fault) return null;
          const { title, remedy } = explain(fault.reason);
          return (
            <li key={part}>
              <TonePill tone={fault.fatal ? 'bad' : 'warn'}>{part}</TonePill>
              <div>
                {title}: <span lang="en">{visibleText(fault.message)}</span>
              </div>
              {remedy !== '' && <div>{remedy}</div>}
              <small>
                <Rich
                  k="sentence.reason"
                  values={{ reason: fault.reason, time: <Time key="time" at={fault.since} as="clock" /> }}
                />
              </small>
            </li>
          );
        })}
      </ul>
      <div>
        <TonePill tone="ok">{t('reconcile.parts.sound', { count: sound.length })}</TonePill>
      </div>
      <small lang="en">{sound.join(' · ')}</small>
    </>
  );
}
