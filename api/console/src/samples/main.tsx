import '../generated/theme.css';
import '../styles/mantine';

import { QueryClientProvider } from '@tanstack/react-query';
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from '@tanstack/react-router';
import { createRoot } from 'react-dom/client';

import { createQueryClient } from '../app/query-client';
import { ThemeProvider } from '../app/ThemeProvider';
import { Toasts } from '../components/Toasts';
import { LanguageProvider } from '../i18n';
import { SamplesPage } from './SamplesPage';

const router = createRouter({
  routeTree: createRootRoute({ component: SamplesPage }),
  history: createMemoryHistory(),
});
const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <ThemeProvider>
      <LanguageProvider>
        <QueryClientProvider client={createQueryClient()}>
          <Toasts>
            <RouterProvider router={router as never} />
          </Toasts>
        </QueryClientProvider>
      </LanguageProvider>
    </ThemeProvider>,
  );
}
