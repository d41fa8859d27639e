import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import detail from '../../components/detail.module.css';
import { Actor } from '../../components/Actor';
import { Time } from '../../components/Time';
import { Rich, useT } from '../../i18n';
import { changeText } from './change-texts';
import styles from './dashboard.module.css';

/** The newest changes that people made. */
export function ChangesCard({ changes }: { changes: Schemas['AuditEntry'][] }): ReactNode {
  const t = useT();
  return (
    <section className={`card ${detail.card ?? ''}`} aria-labelledby="changes">
      <h2 id="changes">{t('dashboard.changes')}</h2>
      {changes.length === 0 && <p className="dim">{t('dashboard.changes.none')}</p>}
      <ul className={styles.changes}>
        {changes.map((entry) => (
          <li key={entry.seq} className={styles.change}>
            <span className={styles.when}>
              <Time at={entry.at} />
            </span>
            <span>
              <Rich
                k={changeText(entry.action)}
                values={{
                  actor: (
                    <strong key="actor">
                      <Actor name={entry.actor} />
                    </strong>
                  ),
                  object: <code key="object">{objectName(entry.object)}</code>,
                  action: <code key="action">{entry.action}</code>,
                }}
              />
            </span>
          </li>
        ))}
      </ul>
      <Link to="/admin/audit">{t('dashboard.changes.all')}</Link>
    </section>
  );
}

/** Names of the objects of an entry, without their kinds. */
function objectName(object: string): string {
  return object
    .split(',')
    .map((one) => one.slice(one.indexOf('/') + 1))
    .join(', ');
}
