import { useQuery } from '@tanstack/react-query';

import type { SettingGroup, SettingKey, SettingTexts } from '../modules/settings';
import type { Language } from './language';
import { useTranslation } from './translator';

interface Texts {
  settings: SettingTexts;
  settingGroups: Record<SettingGroup, string>;
}

async function loadTexts(language: Language): Promise<Texts> {
  return language === 'en' ? await import('./en/settings') : await import('./zh/settings');
}

/** Titles and texts of settings in the page's language. */
export interface SettingNames {
  /** All known settings by key. */
  all: readonly (readonly [key: string, title: string])[];
  /** Title and text of a setting; undefined for one of a newer server. */
  find: (key: string) => readonly [title: string, text: string] | undefined;
  group: (group: string) => string;
}

/** Loads the titles of settings; undefined until they are there. */
export function useSettingNames(): SettingNames | undefined {
  const { language } = useTranslation();
  const { data } = useQuery({
    queryKey: ['settings', language],
    queryFn: () => loadTexts(language),
    select: ({ settings, settingGroups }): SettingNames => ({
      all: Object.entries(settings).map(([key, [title]]) => [key, title] as const),
      find: (key) => (key in settings ? settings[key as SettingKey] : undefined),
      group: (group) => (group in settingGroups ? settingGroups[group as SettingGroup] : group),
    }),
    staleTime: Infinity,
    gcTime: Infinity,
  });
  return data;
}
