import type { QueryClient } from '@tanstack/react-query';
import { createRouter } from '@tanstack/react-router';

import { LoadingState } from '../components/LoadingState';
import { BrokenPage } from '../layout/BrokenPage';
import { MissingPage } from '../layout/MissingPage';
import { queryText } from '../api/client';
import { prefix } from '../prefix';
import { adminPages } from './admin-pages';
import { adminRoute, homeRoute, rootRoute, userRoute } from './parents';
import { userPages } from './user-pages';

const tree = rootRoute.addChildren([
  homeRoute,
  adminRoute.addChildren([...adminPages]),
  userRoute.addChildren([...userPages]),
]);

/** Reads the query of an address. */
function readSearch(text: string): Record<string, string | string[]> {
  const search = new URLSearchParams(text);
  const all = [...new Set(search.keys())].map((name): [string, string | string[]] => {
    const values = search.getAll(name);
    return [name, values.length === 1 ? (values[0] ?? '') : values];
  });
  return Object.fromEntries(all);
}

/** Makes the router of all pages behind the sign-in. */
export function createAppRouter(client: QueryClient) {
  return createRouter({
    routeTree: tree,
    basepath: prefix === '' ? '/' : prefix,
    context: { client },
    // Fields of the query are text, once or repeated: what stands there is what was typed.
    parseSearch: readSearch,
    stringifySearch: queryText,
    defaultPreload: 'intent',
    defaultPreloadStaleTime: 0,
    // The frame is shown while the page's own code is still on its way.
    defaultPendingComponent: LoadingState,
    defaultPendingMs: 0,
    defaultPendingMinMs: 0,
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
