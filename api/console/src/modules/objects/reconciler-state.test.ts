import { expect, test } from 'vitest';

import type { Schemas } from '../../api/types';
import { stateOfReconciler } from './reconciler-state';

const summary = (parts: object): Schemas['ReconcilerSummary'] =>
  ({ leader: true, paused: false, panicked: 0, ...parts }) as unknown as Schemas['ReconcilerSummary'];

test('pause comes before faults, faults before degradations', () => {
  const label = (parts: object): string => stateOfReconciler(summary(parts)).state.label;
  expect(label({})).toBe('reconciler.runs');
  expect(label({ events_lost: true })).toBe('state.degraded');
  expect(label({ events_lost: true, stuck: 'no progress' })).toBe('reconciler.faulty');
  expect(label({ stuck: 'no progress', paused: true })).toBe('state.paused');
  expect(label({ leader: false })).toBe('reconciler.elsewhere');
  expect(stateOfReconciler(summary({ resync_error: 'locked' })).message).toBe('locked');
});
