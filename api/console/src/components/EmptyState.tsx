import type { ReactNode } from 'react';

import styles from './states.module.css';

interface Props {
  title: string;
  /** Purpose of the list, and the first step. */
  text?: ReactNode;
  action?: ReactNode;
}

/** Shown where nothing is: what this is, and the first step. */
export function EmptyState({ title, text, action }: Props): ReactNode {
  return (
    <div className={styles.empty}>
      <strong>{title}</strong>
      {text !== undefined && <p>{text}</p>}
      {action}
    </div>
  );
}
