import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import styles from '../../components/tabs.module.css';
import { type MessageKey, useT } from '../../i18n';

const TABS = [
  ['/manage', 'chat.title'],
  ['/manage/agent', 'manage.title'],
] as const satisfies (readonly [string, MessageKey])[];

/** The two parts of a user's page, each with its own address. */
export function ManageTabs(): ReactNode {
  const t = useT();
  return (
    <nav aria-label={t('chat.tabs')} className={styles.tabs} data-top>
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
