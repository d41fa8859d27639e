import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import styles from '../../components/tabs.module.css';
import { type MessageKey, useT } from '../../i18n';

const TABS = [
  ['/admin/config', 'config.tab.settings'],
  ['/admin/config/history', 'config.tab.history'],
] as const satisfies (readonly [string, MessageKey])[];

/** Parts of the page, each with its own address. */
export function ConfigTabs(): ReactNode {
  const t = useT();
  return (
    <nav aria-label={t('config.tabs')} className={styles.tabs} data-top>
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
