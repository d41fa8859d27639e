import { createTheme, type CSSVariablesResolver, type MantineColorsTuple } from '@mantine/core';

import { shared } from './tokens';

const token = (name: string): string => `var(--ay-${name})`;

/** The one accent of the console, as Mantine's scale from light to dark. */
const accent: MantineColorsTuple = [
  '#edf2ff',
  '#dbe4ff',
  '#bac8ff',
  '#91a7ff',
  '#7c95ff',
  '#4c6ef5',
  '#3b5bdb',
  '#324fc4',
  '#2b44ab',
  '#233a92',
];

/** Mantine's greys, so that what it takes from them fits the tokens. */
const gray: MantineColorsTuple = [
  '#f7f8fa',
  '#f1f3f6',
  '#e9ecf0',
  '#e3e6ea',
  '#ced4da',
  '#adb5bd',
  '#868e99',
  '#5c6570',
  '#343a40',
  '#1b1f24',
];
const dark: MantineColorsTuple = [
  '#e6e9ed',
  '#c9ced4',
  '#9aa4af',
  '#737d89',
  '#2d333b',
  '#262c33',
  '#1b1f24',
  '#1b1f24',
  '#14171b',
  '#101317',
];

/** Mantine's theme: sizes and fonts of the console; colours come from the tokens. */
export const theme = createTheme({
  colors: { accent, gray, dark },
  primaryColor: 'accent',
  primaryShade: { light: 6, dark: 4 },
  fontFamily: shared.font,
  fontFamilyMonospace: shared.mono,
  fontSizes: { xs: '12.5px', sm: '13px', md: '14px', lg: '16px', xl: '20px' },
  lineHeights: { xs: '1.4', sm: '1.45', md: '1.5', lg: '1.5', xl: '1.4' },
  spacing: { xs: '8px', sm: '12px', md: '16px', lg: '24px', xl: '32px' },
  radius: { xs: '4px', sm: '7px', md: '7px', lg: '10px', xl: '20px' },
  defaultRadius: 'sm',
  headings: { fontFamily: shared.font, fontWeight: '700' },
  respectReducedMotion: true,
  cursorType: 'pointer',
  variantColorResolver: ({ color, variant }) => {
    const bad = color === 'bad';
    const tone = bad ? 'bad' : 'accent';
    const plain = { background: 'transparent', hover: token('hover'), border: '1px solid transparent' };
    if (variant === 'filled') {
      const border = `1px solid ${token(tone)}`;
      return {
        background: token(tone),
        hover: token(`${tone}-hover`),
        color: token(`${tone}-ink`),
        border,
      };
    }
    if (variant === 'default' || variant === 'outline') {
      return {
        background: token('panel'),
        hover: token('hover'),
        color: bad ? token('bad') : token('ink'),
        border: `1px solid ${token('field-line')}`,
      };
    }
    if (variant === 'light') {
      return { ...plain, background: token('soft'), hover: token('soft'), color: token('accent') };
    }
    return { ...plain, color: bad ? token('bad') : color === 'gray' ? token('dim') : token('accent') };
  },
  components: {
    Button: { defaultProps: { size: 'sm', variant: 'default' } },
    Menu: {
      defaultProps: {
        withInitialFocusPlaceholder: false,
        transitionProps: { duration: 100 },
        shadow: 'md',
        withinPortal: true,
      },
    },
    Modal: {
      defaultProps: { lockScroll: false, transitionProps: { duration: 120 }, centered: true, radius: 'lg' },
    },
    Drawer: { defaultProps: { lockScroll: false, transitionProps: { duration: 120 } } },
    Tooltip: {
      defaultProps: { transitionProps: { duration: 100 }, events: { hover: true, focus: true, touch: true } },
    },
    Popover: { defaultProps: { transitionProps: { duration: 100 }, shadow: 'md' } },
    // A heading is a column's unless it says something else.
    TableTh: { defaultProps: { scope: 'col' } },
    Checkbox: { defaultProps: { radius: 'xs' } },
    Loader: { defaultProps: { type: 'dots' } },
  },
});

/** Mantine's own variables that do not reach the contrast that is needed, by tokens of the console. */
export const resolver: CSSVariablesResolver = () => {
  const scheme = {
    '--mantine-color-body': token('panel'),
    '--mantine-color-text': token('ink'),
    '--mantine-color-dimmed': token('dim'),
    '--mantine-color-placeholder': token('dim'),
    '--mantine-color-error': token('bad'),
    '--mantine-color-anchor': token('accent'),
    '--mantine-color-default': token('panel'),
    '--mantine-color-default-hover': token('hover'),
    '--mantine-color-default-color': token('ink'),
    '--mantine-color-default-border': token('field-line'),
    '--mantine-color-disabled': token('off-bg'),
    '--mantine-color-disabled-color': token('off'),
    '--mantine-color-disabled-border': token('line'),
    '--mantine-primary-color-filled': token('accent'),
    '--mantine-primary-color-filled-hover': token('accent-hover'),
    '--mantine-primary-color-light': token('soft'),
    '--mantine-primary-color-light-hover': token('soft'),
    '--mantine-primary-color-light-color': token('accent'),
    '--mantine-primary-color-contrast': token('accent-ink'),
    '--mantine-color-accent-filled': token('accent'),
    '--mantine-color-accent-filled-hover': token('accent-hover'),
    '--mantine-color-accent-light': token('soft'),
    '--mantine-color-accent-light-hover': token('soft'),
    '--mantine-color-accent-light-color': token('accent'),
    '--mantine-shadow-md': token('lift'),
  };
  return { variables: {}, light: scheme, dark: scheme };
};
