import { MantineProvider, type MantineThemeOverride } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { render, type RenderResult } from '@testing-library/react';
import type { ReactNode } from 'react';

import { en } from '../i18n/en';
import { TranslationProvider } from '../i18n/translator';

const translation = { language: 'en' as const, messages: en, setLanguage: () => undefined };

/** Renders a component with what the console puts around all pages, in English. */
export function renderInConsole(element: ReactNode, theme?: MantineThemeOverride): RenderResult {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  return render(
    <MantineProvider env="test" theme={theme}>
      <TranslationProvider value={translation}>
        <QueryClientProvider client={client}>{element}</QueryClientProvider>
      </TranslationProvider>
    </MantineProvider>,
  );
}
