/** Languages of the console, as in the `lang` attribute. */
export const LANGUAGES = ['en', 'zh-CN'] as const;
export type Language = (typeof LANGUAGES)[number];

/** Each language in its own words. */
export const LANGUAGE_NAMES: Record<Language, string> = { en: 'English', 'zh-CN': '中文' };

const STORED = 'agentyard-language';

/** The language that boot.js or the server has set on the page. */
export function pageLanguage(): Language {
  return document.documentElement.lang.startsWith('zh') ? 'zh-CN' : 'en';
}

/** Keeps a choice of language for later visits and marks the page with it. */
export function storeLanguage(language: Language): void {
  document.documentElement.lang = language;
  try {
    localStorage.setItem(STORED, language);
  } catch {
    // Storage may be switched off: then the choice holds for this page.
  }
}
