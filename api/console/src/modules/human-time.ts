import type { Language } from '../i18n/language';
import { duration } from '../i18n/values';

const UNITS: Record<string, number> = {
  y: 31_557_600,
  year: 31_557_600,
  month: 2_630_016,
  day: 86_400,
  h: 3600,
  m: 60,
  s: 1,
};

/** Reads a length of time as the server writes it, such as `30days` or `1h 30m`, in seconds. */
export function readHumanTime(text: string): number | undefined {
  const parts = [...text.matchAll(/(\d+)\s*([a-z]+)/g)];
  if (parts.length === 0) return undefined;
  let seconds = 0;
  for (const [, amount, word = ''] of parts) {
    const unit = UNITS[word] ?? UNITS[word.replace(/s$/, '')];
    if (unit === undefined) return undefined;
    seconds += Number(amount) * unit;
  }
  return seconds;
}

/** A length of time for a sentence: whole days are counted as such. */
export function longTime(seconds: number, language: Language): string {
  if (seconds === 0 || seconds % 86_400 !== 0) return duration(seconds, language);
  const format = new Intl.NumberFormat(language, { style: 'unit', unit: 'day', unitDisplay: 'long' });
  return format.format(seconds / 86_400);
}

/** Duration: "2.1 s", "1 min 5 s". */
export function takenTime(seconds: number, language: Language): string {
  if (seconds >= 10) return duration(seconds, language);
  const format = new Intl.NumberFormat(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  return `${format.format(seconds)} ${language === 'en' ? 's' : '秒'}`;
}
