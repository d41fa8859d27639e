import type { ReactNode } from 'react';

import { LinkTabs, type Tabs } from '../../components/LinkTabs';
import { useT } from '../../i18n';

const TABS: Tabs = [
  ['/admin/images', 'images.tab.engine'],
  ['/admin/images/registry', 'images.tab.registry'],
  ['/admin/images/pulls', 'images.tab.pulls'],
  ['/admin/images/candidates', 'images.tab.candidates'],
];

/** Parts of the pages of images. */
export function ImageTabs(): ReactNode {
  const t = useT();
  return <LinkTabs label={t('images.tabs')} tabs={TABS} />;
}
