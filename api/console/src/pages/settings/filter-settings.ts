import type { SettingNames } from '../../i18n/settings';
import type { Setting } from '../../modules/settings';

/** A setting with its words in the page's language. */
export interface ShownSetting extends Setting {
  /** The service's own English words: the console has none for it. */
  isForeign: boolean;
}

/** Settings of one group, the first part of their keys. */
export interface SettingsOfGroup {
  group: string;
  settings: ShownSetting[];
}

/** Gives settings the titles and texts of the page's language. */
export function nameSettings(settings: Setting[], names: SettingNames): ShownSetting[] {
  return settings.map((setting) => {
    const [title, text] = names.find(setting.key) ?? [setting.title, setting.text];
    return { ...setting, title, text, isForeign: names.find(setting.key) === undefined };
  });
}

/** Keeps settings that have the words in title, text or key, in their groups. */
export function filterSettings(
  settings: ShownSetting[],
  words: string,
  changedOnly: boolean,
): SettingsOfGroup[] {
  const wanted = words.trim().toLowerCase();
  const groups = new Map<string, ShownSetting[]>();
  for (const setting of settings) {
    const said = `${setting.title}\n${setting.text}\n${setting.key}`.toLowerCase();
    if ((changedOnly && setting.isDefault) || !said.includes(wanted)) continue;
    groups.set(setting.group, [...(groups.get(setting.group) ?? []), setting]);
  }
  return [...groups].map(([group, ofGroup]) => ({ group, settings: ofGroup }));
}
