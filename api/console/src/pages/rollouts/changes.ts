import type { Rollout } from '../../api/queries/rollouts';
import { changesImage, lastWord } from './phases';

/** Phases in which users are on their way back, or are back. */
const BACK: ReadonlySet<Rollout['phase']> = new Set<Rollout['phase']>(['rolling_back', 'rolled_back']);

/** Changes that a rollout takes in its phase. */
export interface Changes {
  quick?: 'pause' | 'resume';
  canRollBack: boolean;
  canCancel: boolean;
  /** The command that takes back a configuration or an adapter, which no rollout can do. */
  wayBack?: string;
}

/** Derives what can be done with a rollout. */
export function changesOf(rollout: Rollout): Changes {
  const { phase, type, source } = rollout;
  const ended = typeof rollout.finished_at === 'string';
  const ofImage = changesImage(rollout);
  const isBack = BACK.has(phase);
  const isRunning = phase === 'pulling' || phase === 'rolling';
  const quick = phase === 'paused' ? 'resume' : isRunning ? 'pause' : undefined;
  return {
    quick: ended ? undefined : quick,
    canRollBack: ofImage && !isBack,
    canCancel: ofImage && !ended && !isBack && phase !== 'cancelling',
    wayBack: commandBack(type, source),
  };
}

function commandBack(type: Rollout['type'], source: Rollout['source']): string | undefined {
  if (type === 'adapter') return 'agentyard adapter rollback';
  return type === 'config' && source ? `agentyard config rollback ${lastWord(source)}` : undefined;
}
