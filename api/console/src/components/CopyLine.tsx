import type { ReactNode } from 'react';

import { Copy } from './Copy';
import styles from './copy.module.css';

/** A short text, such as a command or a password, with the button that copies it. */
export function CopyLine({ text }: { text: string }): ReactNode {
  return (
    <div className={styles.line}>
      <code>{text}</code>
      <Copy text={text} />
    </div>
  );
}
