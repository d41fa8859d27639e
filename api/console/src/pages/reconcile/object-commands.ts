import type { Described } from '../../api/queries/users';
import { plainWord } from '../../modules/plain-word';

/** The commands that show an object and do the same as its page. */
export function objectCommands({
  object,
  kind,
  paused,
}: Pick<Described, 'object' | 'kind' | 'paused'>): string[] {
  const name = plainWord(object);
  return [
    `agentyard describe ${name}`,
    `agentyard diff ${name}`,
    ...(paused ? [] : [`agentyard retry ${name}`]),
    ...(kind === 'container' ? [`agentyard restart ${name}`] : []),
    `agentyard ${paused ? 'resume' : 'pause'} ${name}`,
    `agentyard events --object ${name} --watch`,
  ];
}
