import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';

import { Toasts } from '../components/Toasts';
import { LanguageProvider } from '../i18n';
import { createAppRouter } from '../routes/router';
import { createQueryClient } from './query-client';
import { ThemeProvider } from './ThemeProvider';

/** The console behind the sign-in. */
export function App(): ReactNode {
  const [client] = useState(createQueryClient);
  const [router] = useState(() => createAppRouter(client));
  return (
    <ThemeProvider>
      <LanguageProvider>
        <QueryClientProvider client={client}>
          <Toasts>
            <RouterProvider router={router} />
          </Toasts>
        </QueryClientProvider>
      </LanguageProvider>
    </ThemeProvider>
  );
}
