import type { SettingNames } from '../../i18n/settings';
import type { Setting } from '../../modules/settings';
import { type SettingSection, sectionsOf } from './sections';

/** A setting with its words in the page's language. */
export interface ShownSetting extends Setting {
  /** The service's own English words: the console has none for it. */
  isForeign: boolean;
  /** All that a search finds it by, in small letters: its words in both languages, and its key. */
  words: string;
}

/** Settings of a section. */
export interface ShownSection {
  section: SettingSection;
  settings: ShownSetting[];
}

/** Gives settings the titles and texts of the page's language, in the order of the sections. */
export function nameSettings(settings: Setting[], names: SettingNames): ShownSetting[] {
  const named = settings.map((setting) => {
    const found = names.find(setting.key);
    const [title, text] = found ?? [setting.title, setting.text];
    const words = [title, text, setting.title, setting.text, setting.key].join('\n').toLowerCase();
    return { ...setting, title, text, isForeign: found === undefined, words };
  });
  const groups = sectionsOf(settings.map(({ group }) => group)).flatMap((section) => section.groups);
  return groups.flatMap((group) => named.filter((setting) => setting.group === group));
}

/** Keeps settings that have the words in title, text or key, in their sections; empty sections are left out. */
export function filterSettings(
  settings: ShownSetting[],
  sections: SettingSection[],
  words: string,
  changedOnly: boolean,
): ShownSection[] {
  const wanted = words.trim().toLowerCase();
  const kept = settings.filter(
    (setting) => !(changedOnly && setting.isDefault) && setting.words.includes(wanted),
  );
  return sections
    .map((section) => ({
      section,
      settings: section.groups.flatMap((group) => kept.filter((setting) => setting.group === group)),
    }))
    .filter((shown) => shown.settings.length > 0);
}
