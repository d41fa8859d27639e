import { useQuery } from '@tanstack/react-query';

import type { Reason, ReasonTexts } from '../modules/reasons';
import type { Language } from './language';
import { useTranslation } from './translator';

async function loadReasons(language: Language): Promise<ReasonTexts> {
  return (language === 'en' ? await import('./en/reasons') : await import('./zh/reasons')).reasons;
}

/** A reason in the page's language. */
export interface ReasonText {
  title: string;
  remedy: string;
}

/** Returns the function that explains reasons; a reason of a newer server stands for itself. */
export function useReasons(): (reason: string) => ReasonText {
  const { language } = useTranslation();
  const { data } = useQuery({
    queryKey: ['reasons', language],
    queryFn: () => loadReasons(language),
    staleTime: Infinity,
    gcTime: Infinity,
  });
  return (reason) => {
    const text = data?.[reason as Reason];
    return { title: text?.[0] ?? reason, remedy: text?.[1] ?? '' };
  };
}
