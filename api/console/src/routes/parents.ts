import type { QueryClient } from '@tanstack/react-query';
import { createRootRouteWithContext, createRoute, redirect } from '@tanstack/react-router';

import { Failure } from '../api/failure';
import { sessionQuery } from '../api/queries/session';
import type { UserInfo } from '../api/types';
import { AdminLayout } from '../layout/AdminLayout';
import { BrokenPage } from '../layout/BrokenPage';
import { MissingPage } from '../layout/MissingPage';
import { Root } from '../layout/Root';
import { UserLayout } from '../layout/UserLayout';
import { ownUrl } from '../prefix';

/** Context of all routes. */
export interface RouteContext {
  client: QueryClient;
}

/** Reads the session; without one the browser goes to the sign-in page and comes back. */
async function requireSession(client: QueryClient): Promise<UserInfo> {
  try {
    return await client.ensureQueryData(sessionQuery);
  } catch (thrown) {
    if (!(thrown instanceof Failure) || thrown.status !== 401) throw thrown;
    const here = location.pathname.slice(ownUrl('').length) + location.search;
    location.replace(ownUrl(`/login?next=${encodeURIComponent(here)}`));
    return new Promise<never>(() => undefined);
  }
}

const home = (account: UserInfo): '/admin/dashboard' | '/manage' =>
  account.role === 'superadmin' ? '/admin/dashboard' : '/manage';

export const rootRoute = createRootRouteWithContext<RouteContext>()({
  component: Root,
  pendingMs: Infinity,
  errorComponent: BrokenPage,
  notFoundComponent: MissingPage,
});

/** The address without a page: the first page of the account. */
export const homeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/',
  beforeLoad: async ({ context }) => {
    throw redirect({ to: home(await requireSession(context.client)), replace: true });
  },
});

/** Frame of the administrator's pages. */
export const adminRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/admin',
  component: AdminLayout,
  pendingMs: Infinity,
  notFoundComponent: MissingPage,
  errorComponent: BrokenPage,
  beforeLoad: async ({ context }) => {
    const session = await requireSession(context.client);
    if (session.role !== 'superadmin') throw redirect({ to: '/manage', replace: true });
    return { session };
  },
});

/** Frame of a user's own pages. */
export const userRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: 'user',
  component: UserLayout,
  pendingMs: Infinity,
  notFoundComponent: MissingPage,
  errorComponent: BrokenPage,
  beforeLoad: async ({ context }) => {
    const session = await requireSession(context.client);
    if (session.role === 'superadmin') throw redirect({ to: '/admin/dashboard', replace: true });
    return { session };
  },
});
