/** State of a list; all of it is in the URL. */
export interface ListState {
  /** From 1. */
  page: number;
  search: string;
  sort?: { column: string; descending: boolean };
  /** Values by the name of the filter; a filter without values is absent. */
  filters: Record<string, string[]>;
}

/** Query of an address: each field once or repeated. */
export type Search = Record<string, string | string[] | undefined>;

/** Rows on a page. */
export const PAGE_SIZE = 50;

const first = (value: string | string[] | undefined): string =>
  (Array.isArray(value) ? value[0] : value) ?? '';

/** Reads the state of a list from the query of the address; only the named filters are taken. */
export function readListState(search: Search, filterNames: readonly string[]): ListState {
  const page = Number(first(search.page));
  const sort = /^(-?)([a-z_]+)$/.exec(first(search.sort));
  const filters: ListState['filters'] = {};
  for (const name of filterNames) {
    const value = search[name];
    const values = (Array.isArray(value) ? value : [value ?? '']).filter((one) => one !== '');
    if (values.length > 0) filters[name] = values;
  }
  return {
    page: Number.isInteger(page) && page > 1 ? page : 1,
    search: first(search.search),
    sort: sort?.[2] === undefined ? undefined : { column: sort[2], descending: sort[1] === '-' },
    filters,
  };
}

/** Writes the state of a list as a query; what is as usual is left out. */
export function writeListState(state: ListState): Search {
  const { page, search, sort, filters } = state;
  return {
    search: search === '' ? undefined : search,
    sort: sort === undefined ? undefined : `${sort.descending ? '-' : ''}${sort.column}`,
    page: page > 1 ? String(page) : undefined,
    ...filters,
  };
}

/** Fields of the request for the page of the list. */
export function listQuery(state: ListState, pageSize = PAGE_SIZE): Record<string, unknown> {
  return { ...writeListState(state), page: state.page, page_size: pageSize };
}

/** Returns true when a search or a filter is set. */
export function isNarrowed(state: ListState): boolean {
  return state.search !== '' || Object.keys(state.filters).length > 0;
}
