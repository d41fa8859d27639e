import type { ReactNode } from 'react';

import { LinkTabs, type Tabs } from '../../components/LinkTabs';
import { useT } from '../../i18n';

const TABS: Tabs = [
  ['/manage', 'chat.title'],
  ['/manage/agent', 'manage.title'],
];

/** The two parts of a user’s page. */
export function ManageTabs(): ReactNode {
  const t = useT();
  return <LinkTabs label={t('chat.tabs')} tabs={TABS} isTop />;
}
