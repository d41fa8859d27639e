import type { Language } from './language';

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['second', 60],
  ['minute', 60],
  ['hour', 24],
  ['day', 30],
  ['month', 12],
  ['year', Infinity],
];

/** English abbreviations without a stop. */
const SHORT: Record<string, string> = { sec: 's', hr: 'h' };

/** Time since or until a moment: "3 min ago", "in 42 s". */
export function relativeTime(at: Date, now: Date, language: Language): string {
  let amount = (at.getTime() - now.getTime()) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(amount) < size || unit === 'year') {
      const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' });
      const text = format.format(Math.trunc(amount), unit);
      return language === 'en'
        ? text.replace(/\b(sec|min|hr|mo|yr)\./, (_, short: string) => SHORT[short] ?? short)
        : text;
    }
    amount /= size;
  }
  return '';
}

/** Date and time in the viewer's zone, with its offset. */
export function exactTime(at: Date, language: Language): string {
  return new Intl.DateTimeFormat(language, {
    year: 'numeric',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'shortOffset',
  }).format(at);
}

/** A time of today as hours and minutes, another with its date. */
export function clockTime(at: Date, now: Date, language: Language): string {
  const sameDay = at.toDateString() === now.toDateString();
  const day: Intl.DateTimeFormatOptions = sameDay ? {} : { month: 'short', day: 'numeric' };
  return new Intl.DateTimeFormat(language, {
    ...day,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  }).format(at);
}

/** A length of time in its two largest units: "1 h 5 min", "42 s". */
export function duration(seconds: number, language: Language): string {
  const units = language === 'en' ? ['d', 'h', 'min', 's'] : ['天', '小时', '分钟', '秒'];
  const whole = Math.max(0, Math.round(seconds));
  const amounts = [
    Math.floor(whole / 86400),
    Math.floor(whole / 3600) % 24,
    Math.floor(whole / 60) % 60,
    whole % 60,
  ];
  const first = Math.max(
    0,
    amounts.findIndex((amount) => amount > 0),
  );
  const start = whole === 0 ? 3 : first;
  return amounts
    .slice(start, start + 2)
    .map((amount, at) =>
      amount > 0 || (whole === 0 && at === 0) ? `${amount} ${units[start + at] ?? ''}` : '',
    )
    .filter((part) => part !== '')
    .join(' ');
}

const SIZES = ['B', 'KB', 'MB', 'GB', 'TB'];

/** A number of bytes in units of 1024: "340 MB", "1.2 GB". */
export function byteSize(bytes: number, language: Language): string {
  let amount = bytes;
  let unit = 0;
  while (amount >= 1000 && unit < SIZES.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  const digits = unit > 0 && amount < 10 ? 1 : 0;
  const format = new Intl.NumberFormat(language, { minimumFractionDigits: 0, maximumFractionDigits: digits });
  return `${format.format(amount)} ${SIZES[unit] ?? ''}`;
}
