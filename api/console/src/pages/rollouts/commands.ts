import type { Rollout } from '../../api/queries/rollouts';
import { changesOf } from './changes';

/** The commands that show a rollout and change its way. */
export function rolloutCommands(rollout: Rollout): string[] {
  const { id } = rollout;
  const { quick, canRollBack, canCancel, wayBack } = changesOf(rollout);
  const words = [quick, canRollBack ? 'rollback' : undefined, canCancel ? 'cancel' : undefined];
  const changes = words.flatMap((word) => (word === undefined ? [] : `agentyard rollout ${word} ${id}`));
  return [`agentyard rollout status ${id} --watch`, ...changes, ...(wayBack === undefined ? [] : [wayBack])];
}

/** A text as one word of a shell. */
export function shellWord(text: string): string {
  return /^[\w.@:/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
