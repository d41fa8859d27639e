import type { QueryClient } from '@tanstack/react-query';
import { createRouter } from '@tanstack/react-router';

import { BrokenPage } from '../layout/BrokenPage';
import { MissingPage } from '../layout/MissingPage';
import { prefix } from '../prefix';
import { adminPages } from './admin-pages';
import { adminRoute, homeRoute, rootRoute, userRoute } from './parents';
import { userPages } from './user-pages';

const tree = rootRoute.addChildren([
  homeRoute,
  adminRoute.addChildren([...adminPages]),
  userRoute.addChildren([...userPages]),
]);

/** Makes the router of all pages behind the sign-in. */
export function createAppRouter(client: QueryClient) {
  return createRouter({
    routeTree: tree,
    basepath: prefix === '' ? '/' : prefix,
    context: { client },
    defaultPreload: 'intent',
    defaultPreloadStaleTime: 0,
    defaultErrorComponent: BrokenPage,
    defaultNotFoundComponent: MissingPage,
    scrollRestoration: true,
  });
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
