import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import type { ChangedValue } from './changed-values';
import { ChangedRow } from './ChangedRow';
import styles from './config.module.css';

/** Changed settings with their values before and after. */
export function ChangeList({ changes }: { changes: ChangedValue[] }): ReactNode {
  const t = useT();
  return (
    <ul className={styles.changes} aria-label={t('config.changes')}>
      {changes.map((change) => (
        <ChangedRow key={change.key} change={change} />
      ))}
    </ul>
  );
}
