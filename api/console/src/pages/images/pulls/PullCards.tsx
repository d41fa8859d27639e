import type { ReactNode } from 'react';

import styles from '../images.module.css';
import { openPulls } from './open-pulls';
import { PullCard } from './PullCard';
import { usePullsOfPage } from './pulls-context';

/** The pulls under way, above the lists of images. */
export function PullCards(): ReactNode {
  const open = openPulls(usePullsOfPage());
  if (open.length === 0) return null;
  return (
    <div className={styles.pulls}>
      {open.map((pull) => (
        <PullCard key={pull.reference} pull={pull} />
      ))}
    </div>
  );
}
