import { useMemo, useState } from 'react';

/** Rows that are chosen, on all pages: some by their ids, or all that match the filters. */
export interface Selection {
  all: boolean;
  ids: ReadonlySet<string>;
  has: (id: string) => boolean;
  toggle: (id: string) => void;
  setMany: (ids: string[], chosen: boolean) => void;
  chooseAll: () => void;
  clear: () => void;
  /** Number of chosen rows when `total` match. */
  count: (total: number) => number;
}

interface Chosen {
  scope: string;
  all: boolean;
  ids: ReadonlySet<string>;
}

/** Keeps a selection across pages; another `scope` (search and filters) begins with none. */
export function useSelection(scope: string): Selection {
  const [stored, setStored] = useState<Chosen>({ scope, all: false, ids: new Set() });
  return useMemo(() => {
    const chosen = stored.scope === scope ? stored : { scope, all: false, ids: new Set<string>() };
    const setMany = (ids: string[], on: boolean): void => {
      const next = new Set(chosen.ids);
      for (const id of ids) {
        if (on) next.add(id);
        else next.delete(id);
      }
      setStored({ scope, all: false, ids: next });
    };
    return {
      all: chosen.all,
      ids: chosen.ids,
      has: (id) => chosen.all || chosen.ids.has(id),
      toggle: (id) => setMany([id], !chosen.ids.has(id)),
      setMany,
      chooseAll: () => setStored({ scope, all: true, ids: new Set() }),
      clear: () => setStored({ scope, all: false, ids: new Set() }),
      count: (total) => (chosen.all ? total : chosen.ids.size),
    };
  }, [stored, scope]);
}
