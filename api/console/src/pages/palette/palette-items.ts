import { linkOptions } from '@tanstack/react-router';

import type { MessageKey } from '../../i18n';

/** Kinds of what the palette finds, in their order. */
export const PALETTE_KINDS = {
  page: 'palette.pages',
  user: 'palette.users',
  group: 'palette.groups',
  image: 'palette.images',
  skill: 'palette.skills',
  setting: 'palette.settings',
} as const satisfies Record<string, MessageKey>;
export type PaletteKind = keyof typeof PALETTE_KINDS;

/** Something that the palette leads to. */
export interface PaletteItem {
  kind: PaletteKind;
  text: string;
  /** Another name that it is found by. */
  alias?: string;
  /** Said beside it, such as a description. */
  hint?: string;
  link: ReturnType<typeof linkTo>;
}

const links = {
  page: (id: string) => linkOptions({ to: `/admin/${id}` as '/admin/dashboard' }),
  user: (name: string) => linkOptions({ to: '/admin/users/$name', params: { name } }),
  group: (name: string) => linkOptions({ to: '/admin/groups/$name', params: { name } }),
  image: (tag: string) => linkOptions({ to: '/admin/users', search: { image: tag } }),
  skill: (name: string) => linkOptions({ to: '/admin/skills/$name', params: { name } }),
  // The page scrolls to the setting by itself.
  setting: (key: string) => linkOptions({ to: '/admin/config', search: { key }, resetScroll: false }),
};

/** The address of a thing: images lead to their users. */
export function linkTo(kind: PaletteKind, name: string) {
  return links[kind](name);
}

/** Entries that have the words in any case, those that begin with them first; at most `most`. */
export function rankItems(items: PaletteItem[], words: string, most: number): PaletteItem[] {
  const wanted = words.trim().toLowerCase();
  const namesOf = ({ text, alias = '' }: PaletteItem): string[] => [text.toLowerCase(), alias.toLowerCase()];
  const rank = (item: PaletteItem): number => (namesOf(item).some((name) => name.startsWith(wanted)) ? 0 : 1);
  return items
    .filter((item) => namesOf(item).some((name) => name.includes(wanted)))
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, most);
}
