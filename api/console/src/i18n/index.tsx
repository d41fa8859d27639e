import { type ReactNode, useCallback, useEffect, useState } from 'react';

import { en, type MessageKey } from './en';
import type { Values } from './format';
import { type Language, pageLanguage, storeLanguage } from './language';
import {
  type Messages,
  RichText,
  type Translate,
  TranslationProvider,
  useTranslation,
  useTranslator,
} from './translator';

export type { MessageKey } from './en';
export { useTranslation } from './translator';

/** Translates a key of the console. */
export type T = Translate<MessageKey>;

/** Returns the function that translates keys of the console. */
export function useT(): T {
  return useTranslator<MessageKey>();
}

/** A message of the console whose values may be elements. */
export function Rich({ k, values }: { k: MessageKey; values: Values<ReactNode> }): ReactNode {
  const { messages } = useTranslation();
  return <RichText text={messages[k] ?? k} values={values} />;
}

async function loadMessages(language: Language): Promise<Messages> {
  return language === 'en' ? en : (await import('./zh')).zh;
}

/** Keeps the language of the page; shows nothing until its messages are there. */
export function LanguageProvider({ children }: { children: ReactNode }): ReactNode {
  const [language, setLanguage] = useState(pageLanguage);
  const [loaded, setLoaded] = useState<{ language: Language; messages: Messages } | undefined>(() =>
    pageLanguage() === 'en' ? { language: 'en', messages: en } : undefined,
  );
  useEffect(() => {
    let current = true;
    void loadMessages(language).then((messages) => {
      if (current) setLoaded({ language, messages });
    });
    return () => {
      current = false;
    };
  }, [language]);
  const change = useCallback((next: Language) => {
    storeLanguage(next);
    setLanguage(next);
  }, []);
  if (loaded === undefined) return null;
  return <TranslationProvider value={{ ...loaded, setLanguage: change }}>{children}</TranslationProvider>;
}
