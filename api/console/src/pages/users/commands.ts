import type { ListState } from '../../components/table/list-state';
import { plainWord } from '../../modules/plain-word';

/** The command that lists the same users; filters that it does not have are left out. */
export function listCommand({ search, filters }: ListState): string {
  const notReady = filters.not_ready?.includes('true') === true ? ' --not-ready' : '';
  return `agentyard get users${search === '' ? '' : ` --search ${plainWord(search)}`}${notReady}`;
}

/** The commands that show a user and have the user's parts reconciled. */
export function userCommands(name: string, retried: string): string[] {
  return [
    `agentyard describe user/${name}`,
    `agentyard retry ${retried}`,
    `agentyard restart container/${name}`,
    `agentyard events --object container/${name} --watch`,
  ];
}
