import type { Schemas } from '../../api/types';
import type { ShownState } from '../state';

type Summary = Schemas['ReconcilerSummary'];

/** A reconciler's state with the server's sentence about what is wrong, if anything. */
export interface ReconcilerState {
  state: ShownState;
  message: string;
}

/** Derives the state of a reconciler from its numbers. */
export function stateOfReconciler(summary: Summary): ReconcilerState {
  const { paused, stuck, resync_error: unlisted, store_error: unread, panicked, leader } = summary;
  if (paused) return { state: { tone: 'off', label: 'state.paused' }, message: '' };
  const fault = stuck ?? unlisted ?? unread;
  if (fault || panicked > 0) {
    return { state: { tone: 'bad', label: 'reconciler.faulty' }, message: fault ?? '' };
  }
  if (!leader) return { state: { tone: 'off', label: 'reconciler.elsewhere' }, message: '' };
  if (summary.events_closed || summary.events_lost || summary.bell_closed) {
    return { state: { tone: 'warn', label: 'state.degraded' }, message: '' };
  }
  return { state: { tone: 'ok', label: 'reconciler.runs' }, message: '' };
}

/** Numbers of all reconcilers together. */
export function sumReconcilers(all: readonly Summary[]): Record<'objects' | 'notReady' | 'failing', number> {
  const sum = (pick: (one: Summary) => number): number => all.reduce((total, one) => total + pick(one), 0);
  return {
    objects: sum(({ objects }) => objects),
    notReady: sum(({ not_ready: count }) => count),
    failing: sum(({ failing }) => failing),
  };
}
