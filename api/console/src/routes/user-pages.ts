import { createRoute, lazyRouteComponent } from '@tanstack/react-router';

import { userRoute } from './parents';

const manage = createRoute({
  getParentRoute: () => userRoute,
  path: '/manage',
  component: lazyRouteComponent(() => import('../pages/manage/ManagePage'), 'ManagePage'),
});

/** A user's own pages. */
export const userPages = [manage] as const;
