import type { Condition, Schemas } from '../api/types';
import type { MessageKey } from '../i18n';
import { MANUAL, type Reason } from './reasons';

/** Colour and icon of a state. */
export type Tone = 'ok' | 'wait' | 'bad' | 'warn' | 'off' | 'unknown';

/** A state of an object as it is shown everywhere: in lists, on its page, in sentences. */
export interface ShownState {
  tone: Tone;
  label: MessageKey;
  values?: Record<string, string | number>;
}

const state = (tone: Tone, label: MessageKey, values?: ShownState['values']): ShownState => ({
  tone,
  label,
  values,
});

/** Facts from which the state of an object is derived. */
export interface Observed {
  status: Schemas['ConditionStatus'];
  reason: Reason;
  percent?: number | null;
  waits_for?: string | null;
  since?: string | null;
}

/** Reasons of objects that work and need attention. */
const DEGRADED: ReadonlySet<Reason> = new Set<Reason>([
  'ReplacementFailed',
  'HostOpen',
  'QuotaNearlyUsed',
  'StorageLow',
  'BackupFailed',
  'CertificateRefused',
]);
const HELD: ReadonlySet<Reason> = new Set<Reason>(['MassRemoval', 'RolloutPaused']);

/** Derives the state of an object from the condition `Ready`: the one place where this is done. */
export function shownState(observed: Observed): ShownState {
  const { status, reason } = observed;
  if (reason === 'PausedByOperator') return state('off', 'state.paused');
  if (status === 'Unknown') return state('unknown', 'state.unknown');
  if (reason === 'Stopped') return state('off', 'state.stopped');
  if (reason === 'Disabled') return state('off', 'state.disabled');
  if (status === 'True') return state('ok', 'state.ready');
  if (HELD.has(reason)) return state('warn', 'state.held');
  if (DEGRADED.has(reason)) return state('warn', 'state.degraded');
  if (MANUAL.has(reason)) return state('bad', 'state.failed');
  if (reason === 'Terminating') return state('wait', 'state.deleting');
  if (reason === 'ImagePulling' && typeof observed.percent === 'number') {
    return state('wait', 'state.pulling', { percent: observed.percent });
  }
  if (observed.waits_for?.startsWith('engine/')) return state('wait', 'state.waits.engine');
  if (observed.waits_for) return state('wait', 'state.waits.for', { object: observed.waits_for });
  return reason === 'EngineUnavailable' ? state('wait', 'state.waiting') : state('wait', 'state.working');
}

/** The condition `Ready` among the conditions of an object. */
export function readyOf(conditions: Condition[]): Condition | undefined {
  return conditions.find((condition) => condition.type === 'Ready');
}

/** The state of an object from all its conditions; without any nothing is known. */
export function stateOf(conditions: Condition[]): ShownState {
  const ready = readyOf(conditions);
  return ready === undefined ? state('unknown', 'state.unknown') : shownState(ready);
}
