import type { Schemas } from '../../api/types';
import { visibleText } from '../visible-text';

/** Name that an executor gives itself. */
export function executorLabel({ label, client, user_agent: agent }: Schemas['Executor']): string {
  return visibleText(label ?? client ?? agent);
}
