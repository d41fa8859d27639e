import type { ListControl } from '../../components/table/useListState';

/** The control of a list whose filters have a place of their own: they are neither shown nor cleared with the search. */
export function withoutFilters({ state, change }: ListControl): ListControl {
  return {
    state: { ...state, filters: {} },
    change: ({ filters: _, ...parts }, options) => change(parts, options),
  };
}
