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
