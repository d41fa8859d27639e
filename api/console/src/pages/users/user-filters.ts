import type { ListControl } from '../../components/table/useListState';

/** Filters of the list of users, as the address and the server name them. */
export const USER_FILTERS = [
  'not_ready',
  'group',
  'image',
  'source',
  'disabled',
  'reason',
  'status',
] as const;

/** The request for the list: its search acts on names. */
export function usersRequest({ search, ...query }: Record<string, unknown>): Record<string, unknown> {
  return { ...query, name: search };
}

/** Lets each filter have one value, the one chosen last: the server takes no more. */
export function withSingleValues(control: ListControl): ListControl {
  const change: ListControl['change'] = (parts, options) => {
    if (parts.filters === undefined) {
      control.change(parts, options);
      return;
    }
    const filters = Object.fromEntries(
      Object.entries(parts.filters).map(([name, values]) => [name, values.slice(-1)]),
    );
    control.change({ ...parts, filters }, options);
  };
  return { ...control, change };
}
