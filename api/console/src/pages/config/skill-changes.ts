import type { Schemas } from '../../api/types';

/** Users for whom the same becomes of a skill. */
export interface SkillUsers {
  kind: 'gains' | 'loses' | 'changes';
  skill: string;
  users: string[];
}

/** Groups the changes of users by skill. */
export function groupSkillChanges(changes: Schemas['SkillChange'][]): SkillUsers[] {
  const groups = new Map<string, SkillUsers>();
  for (const kind of ['gains', 'loses', 'changes'] as const) {
    for (const change of changes) {
      for (const skill of change[kind]) {
        const group = groups.get(`${kind} ${skill}`) ?? { kind, skill, users: [] };
        group.users.push(change.username);
        groups.set(`${kind} ${skill}`, group);
      }
    }
  }
  return [...groups.values()];
}
