import { createRoute, lazyRouteComponent, redirect } from '@tanstack/react-router';

import { adminRoute } from './parents';

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

/** The administrator's pages: a page is added by its route here and its row in layout/sections.ts. */
export const adminPages = [index, dashboard] as const;
