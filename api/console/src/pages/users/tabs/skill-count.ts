import type { Described } from '../../../api/queries/users';
import type { Schemas } from '../../../api/types';

/** The bindings of a skill set and what lies in the workspace. */
export function readSkillSet({ desired, observed }: Described): {
  bindings: Schemas['SkillBinding'][];
  deployed: Schemas['DeployedSkill'][];
} {
  const { bindings = [] } = (desired ?? {}) as Partial<Schemas['DesiredSkillSet']>;
  const { deployed = [] } = (observed ?? {}) as Partial<Schemas['ObservedSkillSet']>;
  return { bindings, deployed };
}

/** Number of skills that a user shall have, and of those that lie in the workspace as they shall. */
export function countSkills(described: Described): { desired: number; observed: number } {
  const { bindings, deployed } = readSkillSet(described);
  const wanted = new Map(bindings.map(({ skill, digest }) => [skill, digest]));
  const right = deployed.filter(({ skill, digest }) => wanted.get(skill) === digest);
  return {
    desired: wanted.size,
    observed: right.length + deployed.filter(({ skill }) => !wanted.has(skill)).length,
  };
}
