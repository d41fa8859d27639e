import type { ReactNode } from 'react';

import { useT } from '../i18n';
import { useLivePhase } from '../live/LiveProvider';
import styles from './layout.module.css';

const KEYS = {
  connecting: 'live.connecting',
  live: 'live.live',
  reconnecting: 'live.reconnecting',
  away: 'live.away',
} as const;

/** Says whether the page is up to date by itself. */
export function LivePill(): ReactNode {
  const t = useT();
  const { name } = useLivePhase();
  return (
    <span className={styles.live} data-phase={name} role="status">
      {t(KEYS[name])}
    </span>
  );
}
