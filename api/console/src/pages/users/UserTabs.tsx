import type { ReactNode } from 'react';

import { LinkTabs, type Tabs } from '../../components/LinkTabs';
import { useT } from '../../i18n';

const TABS: Tabs = [
  ['/admin/users/$name', 'user.tab.overview'],
  ['/admin/users/$name/log', 'user.tab.log'],
  ['/admin/users/$name/events', 'user.tab.events'],
  ['/admin/users/$name/skills', 'user.tab.skills'],
  ['/admin/users/$name/channels', 'user.tab.channels'],
  ['/admin/users/$name/limits', 'user.tab.limits'],
  ['/admin/users/$name/executors', 'user.tab.executors'],
  ['/admin/users/$name/sessions', 'user.tab.sessions'],
  ['/admin/users/$name/audit', 'user.tab.audit'],
];

/** Parts of a user’s page. */
export function UserTabs({ name }: { name: string }): ReactNode {
  const t = useT();
  return <LinkTabs label={t('user.tabs', { name })} tabs={TABS} params={{ name }} />;
}
