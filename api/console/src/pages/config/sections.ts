import type { MessageKey } from '../../i18n';

/** A part of the settings that is shown at a time. */
export interface SettingSection {
  /** Its name in the address. */
  id: string;
  /** First parts of the keys of its settings. */
  groups: string[];
  /** Title; without one, that of its group. */
  title?: MessageKey;
}

/** The sections in their order. */
const SECTIONS: readonly SettingSection[] = [
  { id: 'container', groups: ['container'] },
  { id: 'image', groups: ['image'] },
  { id: 'web', groups: ['web'] },
  { id: 'ldap', groups: ['ldap'] },
  { id: 'oidc', groups: ['oidc'] },
  { id: 'agent', groups: ['agent', 'security', 'chat'] },
  { id: 'skills', groups: ['skills'] },
  { id: 'files', groups: ['files'] },
  { id: 'mcp', groups: ['mcp'] },
  { id: 'adapter', groups: ['adapter'] },
  { id: 'records', groups: ['archive', 'events', 'audit', 'log'], title: 'config.section.records' },
];

/** Returns the sections of these groups; groups that the console does not know are sections of their own. */
export function sectionsOf(groups: readonly string[]): SettingSection[] {
  const present = new Set(groups);
  const known = new Set(SECTIONS.flatMap((section) => section.groups));
  const added = [...present].filter((group) => !known.has(group));
  return [
    ...SECTIONS.filter((section) => section.groups.some((group) => present.has(group))),
    ...added.map((group) => ({ id: group, groups: [group] })),
  ];
}

/** Returns the id of the section of a setting. */
export function sectionOfKey(key: string): string {
  const group = key.split('.')[0] ?? key;
  return SECTIONS.find(({ groups }) => groups.includes(group))?.id ?? group;
}
