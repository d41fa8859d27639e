import type { Failure } from '../api/failure';
import { errors } from './en/errors';
import type { Translate } from './translator';

/** The sentence for a failure in the page's language, and whether it is the server's own in English. */
export interface FailureText {
  text: string;
  /** Set when the text is the server's. */
  lang?: 'en';
}

/** Says what failed: by its code where the console knows it, else in the server's words. */
export function failureText(failure: Failure, t: Translate<keyof typeof errors>): FailureText {
  const key = `error.${failure.code}`;
  if (Object.hasOwn(errors, key) && failure.code !== 'unexpected')
    return { text: t(key as keyof typeof errors) };
  if (failure.message !== '') return { text: failure.message, lang: 'en' };
  return { text: t('error.unexpected', { status: failure.status }) };
}
