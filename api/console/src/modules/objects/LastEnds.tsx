import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import { DetailCard } from '../../components/DetailCard';
import { Time } from '../../components/Time';
import { Rich, useT } from '../../i18n';
import { visibleText } from '../visible-text';
import styles from './objects.module.css';

/** Unrequested ends of the container, each with the last lines of its log. */
export function LastEnds({ ends }: { ends: Schemas['ContainerEnd'][] }): ReactNode {
  const t = useT();
  if (ends.length === 0) return null;
  return (
    <DetailCard title={t('user.ends')}>
      {ends.map(({ at, cause, exit_code: code, log }) => (
        <div key={at} className={styles.end}>
          <div className="row">
            <Time at={at} as="exact" />
            <span lang="en">{cause}</span>
            {typeof code === 'number' && !cause.includes('exit code') && (
              <Rich k="user.exit" values={{ code: <code key="code">{code}</code> }} />
            )}
          </div>
          {log.length > 0 ? (
            <pre dir="ltr">{log.map(visibleText).join('\n')}</pre>
          ) : (
            <small>{t('user.ends.no.log')}</small>
          )}
        </div>
      ))}
    </DetailCard>
  );
}
