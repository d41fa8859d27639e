import {
  convertCssVariables,
  DEFAULT_THEME,
  defaultCssVariablesResolver,
  mergeMantineTheme,
} from '@mantine/core';

import { resolver, theme } from './theme';
import { dark, light, shared } from './tokens';

type CSSVariables = Variables['variables'];
type Variables = Parameters<typeof convertCssVariables>[0];

const own = (tokens: Record<string, string>): CSSVariables =>
  Object.fromEntries(Object.entries(tokens).map(([name, value]) => [`--ay-${name}`, value]));

/** The variables of both themes: Mantine's, those that replace them, and the tokens of the console. */
export function themeVariables(): Variables {
  const merged = mergeMantineTheme(DEFAULT_THEME, theme);
  const base = defaultCssVariablesResolver(merged);
  const ours = resolver(merged);
  return {
    variables: { ...base.variables, ...ours.variables, ...own(shared) },
    light: { ...base.light, ...ours.light, ...own(light) },
    dark: { ...base.dark, ...ours.dark, ...own(dark) },
  };
}

/** The style file that both pages and the server's own pages share. */
export function themeCss(): string {
  const text = convertCssVariables(themeVariables(), ':root');
  // Pages without the boot script follow the system.
  const system =
    `:root{${cssText(own(light))}}\n` + `@media (prefers-color-scheme: dark){:root{${cssText(own(dark))}}}\n`;
  return `${system}${text}\n`;
}

function cssText(variables: CSSVariables): string {
  return Object.entries(variables)
    .map(([name, value]) => `${name}: ${value};`)
    .join('');
}
