import type { Filter } from '../../components/table/FilterChip';
import type { ListContext } from './listing';

/** A filter that is switched on or off. */
export function switchFilter(name: string, label: string): Filter {
  return { name, label, options: [{ value: 'true', text: label }] };
}

/** A filter whose value comes from a link: shown with its value while it is set, so that it can be removed. */
export function linkedFilter(
  { state }: ListContext,
  name: string,
  label: (value: string) => string,
): Filter[] {
  const value = state.filters[name]?.[0];
  return value === undefined ? [] : [{ name, label: label(value), options: [{ value, text: value }] }];
}

/** Seconds of the ages that a list can be limited to. */
const AGES: Readonly<Record<string, number>> = { '15m': 900, '1h': 3600, '24h': 86_400, '7d': 604_800 };

/** A filter by age; an exact time of the address is shown as it is. */
export function ageFilter({ t, state }: ListContext): Filter {
  const texts = {
    '15m': t('filter.since.15m'),
    '1h': t('filter.since.1h'),
    '24h': t('filter.since.24h'),
    '7d': t('filter.since.7d'),
  };
  const options = Object.entries(texts).map(([value, text]) => ({ value, text }));
  const value = state.filters.since?.[0];
  if (value !== undefined && !(value in AGES)) options.push({ value, text: value });
  return { name: 'since', label: t('filter.since'), options };
}

/** Turns an age into the time that the API takes; another value is left as it is. */
export function withTime(query: Record<string, unknown>): Record<string, unknown> {
  const since = String(Array.isArray(query.since) ? query.since[0] : (query.since ?? ''));
  const age = AGES[since];
  if (age === undefined) return query;
  return { ...query, since: new Date(Date.now() - age * 1000).toISOString() };
}
