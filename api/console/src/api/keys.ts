/**
 * Keys of all queries. A key begins with what it shows, so that a change of an object can invalidate
 * everything that shows it: `['object', kind, name, …]` for one object, `['list', kind, …]` for lists.
 */
export const keys = {
  session: ['session'] as const,
  loginMode: ['login-mode'] as const,
  initStatus: ['object', 'container', 'own', 'init'] as const,
  object: (kind: string, name: string) => ['object', kind, name] as const,
  list: (kind: string, query: Record<string, unknown> = {}) => ['list', kind, query] as const,
  reconcile: ['list', 'reconcile'] as const,
  /** Data of a user's own page; out of date when an object of the kind changes. */
  own: (kind: string, what: string) => ['list', kind, { own: what }] as const,
  /** Folders of the workspace: changed by the agent at any time, and by no event. */
  folder: (path: string, query: Record<string, unknown> = {}) => ['files', 'folder', path, query] as const,
  textFile: (path: string) => ['files', 'text', path] as const,
  trash: (page: number) => ['files', 'trash', page] as const,
};
