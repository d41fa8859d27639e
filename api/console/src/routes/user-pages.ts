import { createRoute, lazyRouteComponent } from '@tanstack/react-router';

import { userRoute } from './parents';

const manage = createRoute({
  getParentRoute: () => userRoute,
  path: '/manage',
  component: lazyRouteComponent(() => import('../pages/manage/ManagePage'), 'ManagePage'),
});

const initializing = createRoute({
  getParentRoute: () => userRoute,
  path: '/initializing',
  component: lazyRouteComponent(() => import('../pages/initializing/InitializingPage'), 'InitializingPage'),
});

/** A user's own pages. */
export const userPages = [manage, initializing] as const;
