import { QueryClient } from '@tanstack/react-query';

import { Failure } from '../api/failure';

/** Makes the cache of all queries. The live stream says when something is out of date, so nothing is polled. */
export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // A browser without any other network calls itself offline, and reaches this service nevertheless.
        networkMode: 'always',
        staleTime: 30_000,
        refetchOnWindowFocus: false,
        retry: (count, thrown) => {
          const status = thrown instanceof Failure ? thrown.status : -1;
          return count < 2 && (status === 0 || status === 503);
        },
        retryDelay: (count, thrown) =>
          thrown instanceof Failure && thrown.retryAfter !== undefined
            ? Math.min(thrown.retryAfter, 10) * 1000
            : 500 * 2 ** count,
      },
      mutations: { networkMode: 'always', retry: false },
    },
  });
}
