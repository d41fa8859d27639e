import type { Schemas } from '../../api/types';
import type { MessageKey } from '../../i18n';

/** Sections that have no page of their own yet, with the kind of their objects and the commands that change them. */
export const LISTED = {
  containers: {
    kind: 'container',
    title: 'section.containers',
    commands: ['agentyard get containers', 'agentyard restart NAME'],
  },
  images: {
    kind: 'image',
    title: 'section.images',
    commands: ['agentyard image list', 'agentyard image pull REFERENCE', 'agentyard rollout start REFERENCE'],
  },
  agent: {
    kind: 'adapter',
    title: 'section.agent',
    commands: ['agentyard adapter show', 'agentyard adapter refresh', 'agentyard adapter rollback'],
  },
  skills: {
    kind: 'skill',
    title: 'section.skills',
    commands: ['agentyard skill list', 'agentyard skill upload ZIP', 'agentyard skill bind SKILL'],
  },
  archives: {
    kind: 'archive',
    title: 'section.archives',
    commands: ['agentyard archive list', 'agentyard archive restore ARCHIVE'],
  },
} as const satisfies Record<
  string,
  { kind: Schemas['ObjectKind']; title: MessageKey; commands: readonly string[] }
>;

/** Address of a read-only list. */
export type ListedSection = keyof typeof LISTED;
