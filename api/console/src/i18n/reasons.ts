import { queryOptions, useQuery } from '@tanstack/react-query';

import type { Reason, ReasonTexts } from '../modules/reasons';
import type { Language } from './language';
import { useTranslation } from './translator';

async function loadReasons(language: Language): Promise<ReasonTexts> {
  return (language === 'en' ? await import('./en/reasons') : await import('./zh/reasons')).reasons;
}

function reasonsQuery(language: Language) {
  return queryOptions({
    queryKey: ['reasons', language],
    queryFn: () => loadReasons(language),
    staleTime: Infinity,
    gcTime: Infinity,
  });
}

/** A reason in the page's language. */
export interface ReasonText {
  title: string;
  remedy: string;
}

/** Returns the function that explains reasons; a reason of a newer server stands for itself. */
export function useReasons(): (reason: string) => ReasonText {
  const { language } = useTranslation();
  const { data } = useQuery(reasonsQuery(language));
  return (reason) => {
    const text = data?.[reason as Reason];
    return { title: text?.[0] ?? reason, remedy: text?.[1] ?? '' };
  };
}

/** All known reasons with their titles, by title. */
export function useReasonOptions(): { value: string; text: string }[] {
  const { language } = useTranslation();
  const { data } = useQuery(reasonsQuery(language));
  const options = Object.entries(data ?? {}).map(([value, [text]]) => ({ value, text }));
  return options.sort((a, b) => a.text.localeCompare(b.text, language));
}
