import type { ImagePull } from '../../../api/queries/images';
import type { PullView } from './pull-view';
import type { Pulls } from './pulls-context';

/** A pull by what is known of it. */
export interface OpenPull {
  reference: string;
  listed?: ImagePull;
  view?: PullView;
}

/** Pulls under way and those of this tab that have failed, each once, by name. */
export function openPulls({ listed = [], views }: Pick<Pulls, 'listed' | 'views'>): OpenPull[] {
  const byName = new Map<string, OpenPull>();
  for (const one of listed) byName.set(one.reference, { reference: one.reference, listed: one });
  for (const [reference, view] of Object.entries(views))
    byName.set(reference, { ...byName.get(reference), reference, view });
  return [...byName.values()].sort((a, b) => a.reference.localeCompare(b.reference));
}

/** Progress of a pull, 0 to 100; undefined while it has not begun. */
export function pullPercent({ listed, view }: OpenPull): number | undefined {
  if (listed?.running !== true && (view === undefined || view.layers.length === 0)) return undefined;
  return Math.max(listed?.percent ?? 0, view?.percent ?? 0);
}
