import { useTranslation } from '../i18n';
import { relativeTime } from '../i18n/values';
import { useNow } from './useNow';

/** Age of a moment, to the second as long as it is near; with `past` one in the future is now. */
export function useAge(at: Date, past = false): string {
  const { language } = useTranslation();
  const coarse = useNow(15);
  const isNear = Math.abs(coarse.getTime() - at.getTime()) < 90_000;
  const now = useNow(isNear ? 1 : 15);
  if (Number.isNaN(at.getTime())) return '';
  return relativeTime(past && at > now ? now : at, now, language);
}
