import type { MessageKey } from '../i18n';

/** Groups of the menu in their order; the first has no heading. */
export const GROUPS = ['', 'people', 'agents', 'access', 'operations'] as const;

/** An entry of the administrator's menu. */
export interface Section {
  /** Last part of the address, `/admin/<id>`. */
  id: string;
  label: MessageKey;
  group: (typeof GROUPS)[number];
  /** Kind of the objects whose number that needs action is shown. */
  counts?: string;
}

/** The sections that have a page, in the order of the menu. */
export const SECTIONS: readonly Section[] = [
  { id: 'dashboard', label: 'section.dashboard', group: '' },
  { id: 'users', label: 'section.users', group: 'people', counts: 'container' },
  { id: 'groups', label: 'section.groups', group: 'people' },
  { id: 'superadmins', label: 'section.superadmins', group: 'people' },
  { id: 'containers', label: 'section.containers', group: 'agents', counts: 'container' },
  { id: 'images', label: 'section.images', group: 'agents', counts: 'image' },
  { id: 'config', label: 'section.config', group: 'agents' },
  { id: 'agent', label: 'section.agent', group: 'agents', counts: 'adapter' },
  { id: 'skills', label: 'section.skills', group: 'agents', counts: 'skill' },
  { id: 'auth', label: 'section.auth', group: 'access' },
  { id: 'executors', label: 'section.executors', group: 'access' },
  { id: 'reconcile', label: 'section.reconcile', group: 'operations' },
  { id: 'rollouts', label: 'section.rollouts', group: 'operations', counts: 'rollout' },
  { id: 'tasks', label: 'section.tasks', group: 'operations' },
  { id: 'events', label: 'section.events', group: 'operations' },
  { id: 'audit', label: 'section.audit', group: 'operations' },
  { id: 'archives', label: 'section.archives', group: 'operations', counts: 'archive' },
];
