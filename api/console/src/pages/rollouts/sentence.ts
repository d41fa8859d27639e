import type { Rollout } from '../../api/queries/rollouts';
import type { MessageKey } from '../../i18n';
import { changesImage, goalOf } from './phases';

/** A message with its values. */
export interface Said {
  key: MessageKey;
  values: Record<string, string | number>;
}

/** Sentences of a rollout: how far it is, and why it is no farther. */
export interface RolloutWords {
  moved: Said;
  why?: Said;
}

const MOVED: Record<Rollout['type'], MessageKey> = {
  upgrade: 'rollout.moved',
  migrate: 'rollout.moved',
  config: 'rollout.brought.config',
  adapter: 'rollout.brought.adapter',
};

/** Users under way that are named. */
const NAMED = 3;

/** Says how far a rollout is. `failed` are the first failed users and `moving` those under way, by name. */
export function sayRollout(rollout: Rollout, failed: string[], moving: string[] = []): RolloutWords {
  const { phase, progress } = rollout;
  const [first = ''] = failed;
  const values = { done: progress.done, total: progress.total, goal: goalOf(rollout) };
  const ofImage = changesImage(rollout);
  const moved = { key: MOVED[rollout.type], values };
  const failure = { name: first, more: Math.max(0, progress.failed - 1) };
  const plain = (key: MessageKey): Said => ({ key, values });
  switch (phase) {
    case 'pulling':
      return { moved: plain('rollout.says.pulling') };
    case 'paused':
      if (rollout.desired === 'pause') return { moved, why: plain('rollout.why.hand') };
      return {
        moved,
        why: first === '' ? plain('rollout.why.paused') : { key: 'rollout.why.failed', values: failure },
      };
    case 'rolling_back':
      return { moved: plain('rollout.says.back') };
    case 'rolled_back':
      return { moved: plain('rollout.says.was.back') };
    case 'cancelling':
      return { moved, why: plain('rollout.why.cancelling') };
    case 'cancelled':
      return { moved, why: plain(ofImage ? 'rollout.why.cancelled' : 'rollout.why.replaced') };
    case 'failed':
      return { moved, why: first === '' ? undefined : { key: 'rollout.why.ended', values: failure } };
    case 'rolling': {
      const count = moving.length;
      const names = moving.slice(0, NAMED).join(', ');
      const more = Math.max(0, count - NAMED);
      return { moved, why: count === 0 ? undefined : { key: 'rollout.why.moving', values: { names, more } } };
    }
    default:
      return { moved };
  }
}
