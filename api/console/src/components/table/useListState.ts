import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';

import { type ListState, readListState, type Search, writeListState } from './list-state';

/** Changes of a list's state. */
export interface ListControl {
  state: ListState;
  /** Changes parts of the state; everything but a change of the page leads to page 1. */
  change: (parts: Partial<ListState>, options?: { replace?: boolean }) => void;
}

/** Keeps the state of a list in the URL. `filterNames` must be the same array at each call. */
export function useListState(filterNames: readonly string[]): ListControl {
  const search: Search = useSearch({ strict: false });
  const navigate = useNavigate();
  const state = useMemo(() => readListState(search, filterNames), [search, filterNames]);
  const change = useCallback<ListControl['change']>(
    (parts, { replace = false } = {}) => {
      const next = (old: Search): Search => {
        const rest = Object.fromEntries(Object.entries(old).filter(([name]) => !filterNames.includes(name)));
        const merged = { ...readListState(old, filterNames), page: 1, ...parts };
        return { ...rest, ...writeListState(merged) };
      };
      void navigate({ to: '.', search: next as never, replace });
    },
    [navigate, filterNames],
  );
  return { state, change };
}
