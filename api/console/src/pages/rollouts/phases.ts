import type { Rollout } from '../../api/queries/rollouts';
import type { Schemas } from '../../api/types';
import type { MessageKey } from '../../i18n';
import { shortImage } from '../../modules/image-name';
import type { ShownState, Tone } from '../../modules/state';

const PHASES: Record<Schemas['RolloutPhase'], ShownState> = {
  pulling: { tone: 'wait', label: 'rollout.pulling' },
  rolling: { tone: 'wait', label: 'rollout.rolling' },
  paused: { tone: 'warn', label: 'rollout.paused' },
  rolling_back: { tone: 'wait', label: 'rollout.rolling.back' },
  cancelling: { tone: 'wait', label: 'rollout.cancelling' },
  succeeded: { tone: 'ok', label: 'rollout.succeeded' },
  failed: { tone: 'bad', label: 'rollout.failed' },
  rolled_back: { tone: 'off', label: 'rollout.rolled.back' },
  cancelled: { tone: 'off', label: 'task.cancelled' },
};

/** The state of a rollout; a phase of a newer server stands for nothing known. */
export function stateOfRollout({ phase }: Pick<Rollout, 'phase'>): ShownState {
  return phase in PHASES ? PHASES[phase] : { tone: 'unknown', label: 'state.unknown' };
}

const TARGETS: Record<Schemas['RolloutTargetState'], [Tone, MessageKey]> = {
  pending: ['off', 'rollout.user.pending'],
  moving: ['wait', 'rollout.user.moving'],
  done: ['ok', 'rollout.user.done'],
  putting_back: ['wait', 'rollout.user.putting.back'],
  failed: ['bad', 'rollout.failed'],
  rolling_back: ['wait', 'rollout.user.putting.back'],
  rolled_back: ['off', 'rollout.user.back'],
  skipped: ['off', 'rollout.user.skipped'],
  cancelled: ['off', 'rollout.user.cancelled'],
};

/** The state of one user of a rollout. */
export function stateOfTarget(state: Schemas['RolloutTargetState']): [Tone, MessageKey] {
  return state in TARGETS ? TARGETS[state] : ['unknown', 'state.unknown'];
}

/** Reports that users get another image by it, and no configuration or adapter. */
export function changesImage({ type }: Pick<Rollout, 'type'>): boolean {
  return type === 'upgrade' || type === 'migrate';
}

/** Names what users get: an image, or the number of a configuration or the version of an adapter. */
export function goalOf({ type, reference }: Pick<Rollout, 'type' | 'reference'>): string {
  return changesImage({ type }) ? shortImage(reference) : lastWord(reference);
}

/** The last word of a text such as `configuration 5`. */
export function lastWord(text: string): string {
  return text.slice(text.lastIndexOf(' ') + 1);
}

const TITLES: Record<Schemas['RolloutKind'], MessageKey> = {
  upgrade: 'rollout.title.image',
  migrate: 'rollout.title.image',
  config: 'rollout.title.config',
  adapter: 'rollout.title.adapter',
};

/** Heading of a rollout; its value is `goal`. */
export function titleOf({ type }: Pick<Rollout, 'type'>): MessageKey {
  return type in TITLES ? TITLES[type] : 'rollout.title.image';
}
