import { createRoute, lazyRouteComponent, redirect } from '@tanstack/react-router';

import { adminRoute } from './parents';

/** Query of the page of settings. */
interface ConfigSearch {
  /** Id of the section that is shown. */
  section?: string;
  /** Key of the setting to which the page scrolls. */
  key?: string;
  search?: string;
  changed?: string;
}

const config = createRoute({
  getParentRoute: () => adminRoute,
  path: 'config',
  component: lazyRouteComponent(() => import('../pages/config/ConfigPage'), 'ConfigPage'),
});

const settings = createRoute({
  getParentRoute: () => config,
  path: '/',
  validateSearch: (search: ConfigSearch): ConfigSearch => search,
  component: lazyRouteComponent(() => import('../pages/config/SettingsTab'), 'SettingsTab'),
});

const history = createRoute({
  getParentRoute: () => config,
  path: 'history',
  component: lazyRouteComponent(() => import('../pages/config/HistoryTab'), 'HistoryTab'),
});

/** The former address of the settings. */
const former = createRoute({
  getParentRoute: () => adminRoute,
  path: 'settings',
  validateSearch: (search: ConfigSearch): ConfigSearch => search,
  beforeLoad: ({ search }) => {
    throw redirect({ to: '/admin/config', search, replace: true });
  },
});

/** The settings and their history. */
export const adminConfigPages = [config.addChildren([settings, history]), former] as const;
