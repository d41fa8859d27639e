import type { ReactNode } from 'react';

import { useT } from '../i18n';
import styles from './layout.module.css';

/** First link of each page, for the keyboard: leads past the menu. */
export function SkipLink(): ReactNode {
  const t = useT();
  const skip = (): void => document.getElementById('content')?.focus();
  return (
    <a
      href="#content"
      className={styles.skip}
      onClick={(event) => {
        event.preventDefault();
        skip();
      }}
    >
      {t('layout.skip')}
    </a>
  );
}
