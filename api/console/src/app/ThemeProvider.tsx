import { MantineProvider } from '@mantine/core';
import { type ReactNode, useSyncExternalStore } from 'react';

import { onSchemeChange, pageScheme } from '../scheme';
import { resolver, theme } from '../theme';

/** Mantine with the console's theme; variables and classes come from theme.css and our own styles. */
export function ThemeProvider({ children }: { children: ReactNode }): ReactNode {
  const scheme = useSyncExternalStore(onSchemeChange, pageScheme);
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={resolver}
      withCssVariables={false}
      withGlobalClasses={false}
      withStaticClasses={false}
      forceColorScheme={scheme}
    >
      {children}
    </MantineProvider>
  );
}
