import { fieldType } from './read-entry';
import type { PendingChange } from './pending';

/** Commands while nothing is changed. */
export const GENERAL_COMMANDS = [
  'agentyard config get KEY',
  'agentyard config set KEY=VALUE',
  'agentyard config unset KEY',
  'agentyard config history',
];

/** A word of a shell. */
function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Returns the commands that save the same changes; secrets are prompted for, documents read from files. */
export function pendingCommands(changes: PendingChange[]): string[] {
  const assignments: string[] = [];
  const commands: string[] = [];
  const unset: string[] = [];
  let consent = '';
  for (const { setting, kind, value } of changes) {
    const { key } = setting;
    const type = fieldType(setting);
    if (key === 'web.auth_mode') consent = ' --yes';
    if (kind === 'reset' || kind === 'remove') unset.push(key);
    else if (kind === 'replace') assignments.push(`${key}=-`);
    else if (type === 'json') commands.push(`agentyard config set ${key}=- < ${key.replace('.', '-')}.json`);
    else if (type === 'long_text' && value !== '') commands.push(`agentyard config set ${key}=- < ca.pem`);
    else assignments.push(quote(`${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`));
  }
  if (assignments.length > 0) commands.unshift(`agentyard config set ${assignments.join(' ')}${consent}`);
  if (unset.length > 0) commands.push(`agentyard config unset ${unset.join(' ')}${consent}`);
  return commands;
}
