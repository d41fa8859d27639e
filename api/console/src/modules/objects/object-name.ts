import type { Schemas } from '../../api/types';

/** Kind and name of an object that is written as `kind/name`; a name may have slashes. */
export function splitObject(object: string): { kind: string; name: string } {
  const at = object.indexOf('/');
  return at < 0 ? { kind: object, name: '' } : { kind: object.slice(0, at), name: object.slice(at + 1) };
}

/** Kinds whose objects have the name of the user that they belong to. */
export const OF_USER = ['user', 'container', 'agent-config', 'skill-set'] as const;

/** Returns true for a kind whose objects have the name of the user that they belong to. */
export function isOfUser(kind: string): boolean {
  return (OF_USER as readonly string[]).includes(kind);
}

/** Kinds of objects that can be described; the service itself, groups and settings are none. */
export const OBJECT_KINDS: readonly Schemas['ObjectKind'][] = [
  ...OF_USER,
  'image',
  'rollout',
  'adapter',
  'skill',
  'skill-repository',
  'archive',
  'directory',
  'usage',
  'engine',
];

/** Returns true for a kind of objects that can be described. */
export function hasObjectPage(kind: string): boolean {
  return (OBJECT_KINDS as readonly string[]).includes(kind);
}
