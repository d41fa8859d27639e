import { useLocation } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { Rich, useT } from '../i18n';
import { ownUrl } from '../prefix';
import styles from './layout.module.css';

/** Shown at an address that has no page. */
export function MissingPage(): ReactNode {
  const t = useT();
  const path = useLocation({ select: (location) => location.pathname });
  return (
    <div className={styles.message}>
      <h1>{t('page.missing')}</h1>
      <p className="dim">
        <Rich k="page.missing.text" values={{ path: <code>{path}</code> }} />
      </p>
      <a href={ownUrl('/')}>{t('page.home')}</a>
    </div>
  );
}
