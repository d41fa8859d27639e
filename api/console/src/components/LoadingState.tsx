import { Skeleton } from '@mantine/core';
import type { ReactNode } from 'react';

import { useT } from '../i18n';
import styles from './states.module.css';

/** Rows of the right height in place of what is loading. */
export function LoadingState({ rows = 5, height = 14 }: { rows?: number; height?: number }): ReactNode {
  const t = useT();
  return (
    <div className={styles.skeleton} role="status" aria-label={t('loading')}>
      {Array.from({ length: rows }, (_, at) => (
        <Skeleton key={at} height={height} width={`${90 - ((at * 17) % 40)}%`} />
      ))}
    </div>
  );
}
