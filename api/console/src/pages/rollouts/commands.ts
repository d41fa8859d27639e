import type { Rollout } from '../../api/queries/rollouts';
import { changesImage, lastWord } from './phases';

/** The commands that show a rollout and change its way. */
export function rolloutCommands(rollout: Rollout): string[] {
  const { id, finished_at: end, phase, source, type } = rollout;
  const commands = [`agentyard rollout status ${id} --watch`];
  if (!end) commands.push(`agentyard rollout ${phase === 'paused' ? 'resume' : 'pause'} ${id}`);
  if (changesImage(rollout)) {
    commands.push(`agentyard rollout rollback ${id}`);
    if (!end) commands.push(`agentyard rollout cancel ${id}`);
  }
  if (type === 'config' && source) commands.push(`agentyard config rollback ${lastWord(source)}`);
  if (type === 'adapter') commands.push('agentyard adapter rollback');
  return commands;
}

/** A text as one word of a shell. */
export function shellWord(text: string): string {
  return /^[\w.@:/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
