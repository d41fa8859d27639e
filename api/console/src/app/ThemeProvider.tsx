import { MantineProvider, mergeThemeOverrides } from '@mantine/core';
import { type ReactNode, useSyncExternalStore } from 'react';

import { onSchemeChange, pageScheme } from '../scheme';
import { resolver, theme } from '../theme';
import styles from './fields.module.css';

const themeWithFields = mergeThemeOverrides(theme, {
  components: {
    Input: { classNames: { wrapper: styles.field } },
    Checkbox: { classNames: { input: styles.check } },
    Radio: { classNames: { radio: styles.check } },
    Switch: { classNames: { track: styles.track } },
  },
});

/** Mantine with the console's theme; variables and classes come from theme.css and our own styles. */
export function ThemeProvider({ children }: { children: ReactNode }): ReactNode {
  const scheme = useSyncExternalStore(onSchemeChange, pageScheme);
  return (
    <MantineProvider
      theme={themeWithFields}
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
