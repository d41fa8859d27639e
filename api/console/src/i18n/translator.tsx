import { createContext, Fragment, type ReactNode, use, useMemo } from 'react';

import { formatParts, type Values } from './format';
import type { Language } from './language';

/** Messages of one language by key. */
export type Messages = Record<string, string>;

/** The language of the page with its messages. */
export interface Translation {
  language: Language;
  messages: Messages;
  setLanguage: (language: Language) => void;
}

const TranslationContext = createContext<Translation | undefined>(undefined);
export const TranslationProvider = TranslationContext.Provider;

/** The page's language, and how to change it. */
export function useTranslation(): Translation {
  const translation = use(TranslationContext);
  if (translation === undefined) throw new Error('no TranslationProvider');
  return translation;
}

/** Translates a key with plain values. */
export type Translate<K extends string> = (key: K, values?: Values<string | number>) => string;

/** Makes the function that translates keys of one set of messages. */
export function translator<K extends string>(messages: Messages, language: string): Translate<K> {
  return (key, values = {}) => formatParts(messages[key] ?? key, values, language).join('');
}

/** Translates keys in the page's language. */
export function useTranslator<K extends string>(): Translate<K> {
  const { messages, language } = useTranslation();
  return useMemo(() => translator<K>(messages, language), [messages, language]);
}

/** A message whose values may be elements. */
export function RichText({ text, values }: { text: string; values: Values<ReactNode> }): ReactNode {
  const { language } = useTranslation();
  const parts = formatParts<ReactNode>(text, values, language);
  return parts.map((part, index) => <Fragment key={index}>{part}</Fragment>);
}
