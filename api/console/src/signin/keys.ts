import type { errors } from '../i18n/en/errors';
import type { signin } from '../i18n/en/signin';
import { type Translate, useTranslator } from '../i18n/translator';

/** Keys of the sign-in page: a part of those of the console. */
export type SigninKey = keyof typeof signin | keyof typeof errors;

/** Returns the function that translates keys of the sign-in page. */
export function useSigninT(): Translate<SigninKey> {
  return useTranslator<SigninKey>();
}
