import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import styles from '../../components/tabs.module.css';
import { type MessageKey, useT } from '../../i18n';

const TABS = [
  ['/admin/images', 'images.tab.engine'],
  ['/admin/images/registry', 'images.tab.registry'],
  ['/admin/images/pulls', 'images.tab.pulls'],
  ['/admin/images/candidates', 'images.tab.candidates'],
] as const satisfies (readonly [string, MessageKey])[];

/** Parts of the pages of images, each with its own address. */
export function ImageTabs(): ReactNode {
  const t = useT();
  return (
    <nav aria-label={t('images.tabs')} className={styles.tabs}>
      {TABS.map(([to, label]) => (
        <Link
          key={to}
          to={to}
          search={{}}
          data-text={t(label)}
          activeOptions={{ exact: true, includeSearch: false }}
        >
          {t(label)}
        </Link>
      ))}
    </nav>
  );
}
