import { queryOptions, useQuery } from '@tanstack/react-query';

import { get } from '../../api/client';
import { keys } from '../../api/keys';
import { groupsQuery, tagsQuery, usersQuery } from '../../api/queries/users';
import type { Schemas } from '../../api/types';
import { useT } from '../../i18n';
import { useSettingNames } from '../../i18n/settings';
import { SECTIONS } from '../../layout/sections';
import { linkTo, type PaletteItem, type PaletteKind, rankItems } from './palette-items';

/** Entries of a kind that are shown. */
const MOST = 6;

const skillsQuery = queryOptions({
  queryKey: keys.list('skill', { palette: true }),
  queryFn: ({ signal }) =>
    get<Schemas['Skills']>('/api/admin/skills', { page: 1, page_size: 200 }, { signal }),
});

/** Matches of the search words: pages, users (found by the server), groups, images, skills, settings. */
export function usePaletteItems(words: string): PaletteItem[] {
  const t = useT();
  const { data: found } = useQuery({
    ...usersQuery({ name: words.trim(), page: 1, page_size: MOST }),
    enabled: words.trim() !== '',
  });
  const { data: groups } = useQuery(groupsQuery);
  const { data: tags } = useQuery(tagsQuery);
  const { data: skills } = useQuery(skillsQuery);
  const names = useSettingNames();
  const item = (kind: PaletteKind, name: string, text = name, hint?: string): PaletteItem => ({
    kind,
    text,
    hint,
    link: linkTo(kind, name),
  });
  const fit = (items: PaletteItem[]): PaletteItem[] => rankItems(items, words, MOST);
  const pages = SECTIONS.map(({ id, label }) => item('page', id, t(label)));
  if (words.trim() === '') return pages;
  return [
    ...fit(pages),
    ...fit((found?.users ?? []).map(({ username }) => item('user', username))),
    ...fit((groups?.groups ?? []).map(({ name, description }) => item('group', name, name, description))),
    ...fit((tags?.tags ?? []).map((tag) => item('image', tag))),
    ...fit((skills?.skills ?? []).map(({ name, description }) => item('skill', name, name, description))),
    ...fit((names?.all ?? []).map(([key, title]) => ({ ...item('setting', key, title, key), alias: key }))),
  ];
}
