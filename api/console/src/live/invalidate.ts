import type { Query, QueryClient } from '@tanstack/react-query';

import type { Change } from './messages';

/** Kinds that are part of what is shown of the user of the same name. */
const OF_USERS = new Set(['user', 'container', 'agent-config', 'skill-set', 'directory', 'usage']);
/** Lists are read again at most this often. */
const GAP = 1000;

/** Returns true for what the stream keeps up to date. */
export function isLive({ queryKey }: Pick<Query, 'queryKey'>): boolean {
  return queryKey[0] === 'object' || queryKey[0] === 'list';
}

/** Collects changes and has everything read again that shows one of the changed objects. */
export class Invalidator {
  private changed = new Map<string, Change>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last = 0;

  constructor(private readonly client: QueryClient) {}

  /** Notes a change. */
  add(change: Change): void {
    this.changed.set(change.object, change);
    this.timer ??= setTimeout(() => this.flush(), Math.max(50, this.last + GAP - Date.now()));
  }

  /** Has everything read again. */
  all(): void {
    void this.client.invalidateQueries({ predicate: isLive });
  }

  /** Forgets what was noted. */
  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.changed.clear();
  }

  private flush(): void {
    const kinds = new Set<string>();
    const objects = new Set<string>();
    for (const object of this.changed.keys()) {
      const at = object.indexOf('/');
      const kind = object.slice(0, at);
      kinds.add(kind);
      objects.add(object);
      if (OF_USERS.has(kind)) {
        kinds.add('user');
        objects.add(`user/${object.slice(at + 1)}`);
      }
    }
    this.changed.clear();
    this.timer = undefined;
    this.last = Date.now();
    void this.client.invalidateQueries({
      predicate: ({ queryKey: [sort, kind, name] }) =>
        (sort === 'list' && (kind === 'reconcile' || kinds.has(String(kind)))) ||
        (sort === 'object' && (name === 'own' || objects.has(`${String(kind)}/${String(name)}`))),
    });
  }
}
