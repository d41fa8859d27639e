import { useQuery } from '@tanstack/react-query';
import { useCallback } from 'react';

import type { Language } from './language';
import { useTranslation } from './translator';

async function loadFacts(language: Language): Promise<Record<string, string>> {
  return (language === 'en' ? await import('./en/facts') : await import('./zh/facts')).facts;
}

/** Returns the function that names properties of objects; one of a newer server stands for itself. */
export function useFactNames(): (name: string) => string {
  const { language } = useTranslation();
  const { data } = useQuery({
    queryKey: ['facts', language],
    queryFn: () => loadFacts(language),
    staleTime: Infinity,
    gcTime: Infinity,
  });
  return useCallback((name: string) => data?.[name] ?? name.replaceAll('_', ' '), [data]);
}
