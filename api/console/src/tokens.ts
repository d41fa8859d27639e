/** Names of the colours of the console; each is the CSS variable `--ay-<name>`. */
export type Token = keyof typeof light;

/** Colours of the light theme. Text on its background has a contrast of at least 4.5. */
export const light = {
  bg: '#f7f8fa',
  panel: '#ffffff',
  line: '#e3e6ea',
  'field-line': '#868e99',
  hover: '#f1f3f6',
  ink: '#1b1f24',
  dim: '#5c6570',
  accent: '#3b5bdb',
  'accent-hover': '#324fc4',
  'accent-ink': '#ffffff',
  soft: '#edf2ff',
  ok: '#187345',
  'ok-bg': '#e6f6ec',
  wait: '#0a62ba',
  'wait-bg': '#e7f1fc',
  warn: '#875600',
  'warn-bg': '#fff3d6',
  bad: '#c0272d',
  'bad-hover': '#a52126',
  'bad-ink': '#ffffff',
  'bad-bg': '#fdebec',
  off: '#56606b',
  'off-bg': '#eceff2',
  code: '#f1f3f5',
  mark: '#ffe08a',
  veil: 'rgba(27, 31, 36, 0.45)',
  lift: '0 8px 28px rgba(27, 31, 36, 0.14)',
};

/** Colours of the dark theme. */
export const dark: Record<Token, string> = {
  bg: '#14171b',
  panel: '#1b1f24',
  line: '#2d333b',
  'field-line': '#737d89',
  hover: '#22272e',
  ink: '#e6e9ed',
  dim: '#9aa4af',
  accent: '#7c95ff',
  'accent-hover': '#94a8ff',
  'accent-ink': '#10131a',
  soft: '#232b45',
  ok: '#5bd08f',
  'ok-bg': '#12301f',
  wait: '#6bb3ff',
  'wait-bg': '#11283f',
  warn: '#f0b84a',
  'warn-bg': '#3a2b0b',
  bad: '#ff7b80',
  'bad-hover': '#ff9599',
  'bad-ink': '#1b0d0e',
  'bad-bg': '#3d181b',
  off: '#9aa4af',
  'off-bg': '#262c33',
  code: '#101317',
  mark: '#6b5200',
  veil: 'rgba(0, 0, 0, 0.6)',
  lift: '0 8px 28px rgba(0, 0, 0, 0.5)',
};

/** Lengths and fonts that are the same in both themes. */
export const shared: Record<string, string> = {
  radius: '7px',
  'radius-card': '10px',
  font: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans SC", "PingFang SC", "Microsoft YaHei", sans-serif',
  mono: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Noto Sans Mono", "Noto Sans Mono CJK SC", monospace',
};

/** Pairs of text and background that occur, which the test of contrast checks. */
export const textPairs: [Token, Token][] = [
  ...(['bg', 'panel', 'hover', 'soft', 'code', 'mark'] as const).map((under): [Token, Token] => [
    'ink',
    under,
  ]),
  ...(['bg', 'panel', 'hover', 'soft', 'bad-bg', 'warn-bg', 'wait-bg'] as const).map(
    (under): [Token, Token] => ['dim', under],
  ),
  ...(['bg', 'panel', 'soft', 'hover', 'bad-bg', 'warn-bg', 'wait-bg'] as const).map(
    (under): [Token, Token] => ['accent', under],
  ),
  ...(['ok', 'wait', 'warn', 'bad', 'off'] as const).flatMap((state): [Token, Token][] => [
    [state, `${state}-bg`],
    [state, 'panel'],
    [state, 'bg'],
  ]),
  ['accent-ink', 'accent'],
  ['accent-ink', 'accent-hover'],
  ['bad-ink', 'bad'],
  ['bad-ink', 'bad-hover'],
];
