import type { ReactNode } from 'react';

import { LinkTabs, type Tabs } from '../../components/LinkTabs';
import { useT } from '../../i18n';

const TABS: Tabs = [
  ['/admin/config', 'config.tab.settings'],
  ['/admin/config/history', 'config.tab.history'],
];

/** Parts of the page of settings. */
export function ConfigTabs(): ReactNode {
  const t = useT();
  return <LinkTabs label={t('config.tabs')} tabs={TABS} isTop />;
}
