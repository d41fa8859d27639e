import { createRoute, lazyRouteComponent, redirect } from '@tanstack/react-router';

import type { ListedSection } from '../pages/objects/kinds';
import { adminImagePages } from './admin-images';
import { adminConfigPages } from './admin-config';
import { adminObjectPages } from './admin-objects';
import { adminUserPages } from './admin-users';
import { adminRoute } from './parents';

declare module '@tanstack/react-router' {
  interface StaticDataRouteOption {
    /** Section that is shown as a read-only list. */
    listed?: ListedSection;
  }
}

const index = createRoute({
  getParentRoute: () => adminRoute,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/admin/dashboard', replace: true });
  },
});

const dashboard = createRoute({
  getParentRoute: () => adminRoute,
  path: 'dashboard',
  component: lazyRouteComponent(() => import('../pages/dashboard/DashboardPage'), 'DashboardPage'),
});

/** A section that has no page of its own yet: a read-only list of its objects. */
function listed<const S extends ListedSection>(section: S) {
  return createRoute({
    getParentRoute: () => adminRoute,
    path: section,
    staticData: { listed: section },
    component: lazyRouteComponent(() => import('../pages/objects/ObjectsPage'), 'ObjectsPage'),
  });
}

const agent = createRoute({
  getParentRoute: () => adminRoute,
  path: 'agent',
  staticData: { listed: 'agent' },
  component: lazyRouteComponent(() => import('../pages/agent/AgentPage'), 'AgentPage'),
});

/** The administrator's pages: a page is added by its route here and its row in layout/sections.ts. */
export const adminPages = [
  index,
  dashboard,
  ...adminUserPages,
  ...adminObjectPages,
  listed('groups'),
  ...adminImagePages,
  ...adminConfigPages,
  agent,
  listed('executors'),
  listed('tasks'),
  listed('events'),
  listed('archives'),
] as const;
