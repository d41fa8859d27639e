import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import styles from '../../components/tabs.module.css';
import { type MessageKey, useT } from '../../i18n';

const TABS = [
  ['/admin/users/$name', 'user.tab.overview'],
  ['/admin/users/$name/log', 'user.tab.log'],
  ['/admin/users/$name/events', 'user.tab.events'],
  ['/admin/users/$name/skills', 'user.tab.skills'],
  ['/admin/users/$name/channels', 'user.tab.channels'],
  ['/admin/users/$name/limits', 'user.tab.limits'],
  ['/admin/users/$name/executors', 'user.tab.executors'],
  ['/admin/users/$name/sessions', 'user.tab.sessions'],
  ['/admin/users/$name/audit', 'user.tab.audit'],
] as const satisfies (readonly [string, MessageKey])[];

/** Parts of a user's page, each with its own address. */
export function UserTabs({ name }: { name: string }): ReactNode {
  const t = useT();
  return (
    <nav aria-label={t('user.tabs', { name })} className={styles.tabs}>
      {TABS.map(([to, label]) => (
        <Link
          key={to}
          to={to}
          params={{ name }}
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
