import { expect, test } from 'vitest';

import { themeCss, themeVariables } from './theme-css';
import { dark, light, textPairs, type Token } from './tokens';

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(a: string, b: string): number {
  const [bright = 0, dim = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (bright + 0.05) / (dim + 0.05);
}

const low = (theme: Record<Token, string>, pairs: [Token, Token][], least: number): string[] =>
  pairs
    .map(([text, under]) => ({ name: `${text} on ${under}`, value: contrast(theme[text], theme[under]) }))
    .filter(({ value }) => value < least)
    .map(({ name, value }) => `${name}: ${value.toFixed(2)}`);

test('text has enough contrast in both themes', () => {
  expect(low(light, textPairs, 4.5)).toEqual([]);
  expect(low(dark, textPairs, 4.5)).toEqual([]);
});

test('borders of fields have enough contrast in both themes', () => {
  const borders: [Token, Token][] = [
    ['field-line', 'panel'],
    ['field-line', 'bg'],
    ['accent', 'bg'],
  ];
  expect(low(light, borders, 3)).toEqual([]);
  expect(low(dark, borders, 3)).toEqual([]);
});

test('theme file has all variables of mantine and of the console', () => {
  const css = themeCss();
  const { variables, light: bright, dark: dim } = themeVariables();
  for (const name of Object.keys({ ...variables, ...bright, ...dim })) expect(css).toContain(`${name}:`);
});
