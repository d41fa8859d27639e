import type { Described } from '../../api/queries/users';
import type { MessageKey } from '../../i18n';
import { isOfUser, OF_USER } from './object-name';

/** A page of the console that shows an object to its readers. */
export interface OwnPage {
  text: MessageKey;
  /** Object that the text names. */
  name: string;
  /** Address, where `$name` and `$id` stand for the name. */
  to: string;
  search?: Record<string, string>;
}

const page = (text: MessageKey, name: string, to: string, search?: OwnPage['search']): OwnPage => ({
  text,
  name,
  to,
  search,
});

/** The pages that show an object, the most useful one first. */
export function ownPages({ kind, name, desired }: Pick<Described, 'kind' | 'name' | 'desired'>): OwnPage[] {
  const image = (desired as { image?: unknown } | null | undefined)?.image;
  const images =
    typeof image === 'string' ? [page('related.image', image, '/admin/images', { search: image })] : [];
  if (isOfUser(kind)) {
    const user = page('related.user', name, '/admin/users/$name');
    if (kind === 'container') return [user, page('related.log', name, '/admin/users/$name/log'), ...images];
    if (kind === 'skill-set') return [user, page('related.user.skills', name, '/admin/users/$name/skills')];
    return [user];
  }
  switch (kind) {
    case 'image':
      return [page('related.image', name, '/admin/images', { search: name })];
    case 'rollout':
      return [
        page('related.rollout', name, '/admin/rollouts/$id'),
        page('related.task', name, '/admin/tasks/$id'),
        ...images,
      ];
    case 'adapter':
      return [page('section.agent', name, '/admin/agent')];
    case 'archive':
      return [page('section.archives', name, '/admin/archives')];
    case 'skill':
      return [page('related.skill', name, '/admin/skills/$name')];
    case 'skill-repository':
      return [page('section.skills', name, '/admin/skills')];
    case 'directory':
      return [page('section.auth', name, '/admin/auth')];
    case 'engine':
      return [page('section.containers', name, '/admin/containers')];
    case 'usage':
      return [page('related.usage', name, '/admin/users', { sort: '-used' })];
    default:
      return [];
  }
}

/** Objects that belong to an object, as `kind/name`: the other parts of its user, the skills that it names. */
export function relatedObjects({ kind, name, desired, observed, waits_for: chain }: Described): string[] {
  const related = new Set(chain.map(({ object }) => object));
  if (isOfUser(kind)) {
    for (const other of OF_USER) if (other !== kind) related.add(`${other}/${name}`);
  }
  const { bindings = [] } = (desired ?? {}) as { bindings?: { skill: string }[] };
  const { skills = [] } = (observed ?? {}) as { skills?: string[] };
  for (const { skill } of bindings) related.add(`skill/${skill}`);
  if (kind === 'skill-repository') for (const skill of skills) related.add(`skill/${skill}`);
  const { source } = (desired ?? {}) as { source?: string };
  if (kind === 'skill' && source !== undefined && source !== 'upload')
    related.add(`skill-repository/${source}`);
  return [...related];
}
