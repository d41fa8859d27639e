import type { ReactNode } from 'react';

import { visibleText } from '../../modules/visible-text';
import styles from './config.module.css';

/** A text of several lines, which is scrolled when it is long. */
export function LongText({ text }: { text: string }): ReactNode {
  return (
    // What is scrolled is reached by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <pre className={styles.long} tabIndex={0}>
      {text.split('\n').map(visibleText).join('\n')}
    </pre>
  );
}
