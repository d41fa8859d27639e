import jsxA11y from 'eslint-plugin-jsx-a11y';
import reactHooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

const MEASURES =
  'm|mt|mb|ml|mr|mx|my|p|pt|pb|pl|pr|px|py|w|h|miw|maw|mih|mah|fz|ta|display|gap|justify|align|direction|cols|spacing';
const CSP = 'makes a <style> element, which the content security policy forbids';

export default tseslint.config(
  { ignores: ['dist', 'dist-samples', 'src/generated'] },
  ...tseslint.configs.strict,
  ...tseslint.configs.stylistic,
  {
    files: ['src/**/*.{ts,tsx}'],
    extends: [reactHooks.configs.flat['recommended-latest'], jsxA11y.flatConfigs.strict],
    rules: {
      'max-lines': ['error', 300],
      'no-console': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/consistent-type-definitions': ['error', 'interface'],
      // Focus goes to the first field of the sign-in page and of dialogs.
      'jsx-a11y/no-autofocus': 'off',
      'no-restricted-imports': [
        'error',
        {
          paths: [
            { name: '@tabler/icons-react', message: 'Import single icons from @tabler/icons-react/icons/.' },
            {
              name: '@mantine/core',
              importNames: ['AppShell', 'Grid', 'SimpleGrid'],
              message: `It ${CSP}.`,
            },
            {
              name: '@mantine/core',
              importNames: ['ColorSchemeScript'],
              message: 'It is an inline script; boot.js does this.',
            },
          ],
          patterns: [
            {
              group: ['@mantine/core/styles.css'],
              message: 'Import styles in styles/mantine.ts, one a component.',
            },
          ],
        },
      ],
      'no-restricted-syntax': [
        'error',
        {
          selector: `JSXAttribute[name.name=/^(${MEASURES})$/] > JSXExpressionContainer > ObjectExpression`,
          message: `A responsive style prop ${CSP}; use a CSS module.`,
        },
        {
          selector: 'JSXAttribute[name.name=/^(hiddenFrom|visibleFrom|lightHidden|darkHidden)$/]',
          message: 'Use a CSS module.',
        },
        {
          selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
          message: 'Answers are shown as text.',
        },
        { selector: "JSXOpeningElement[name.name='style']", message: `It ${CSP}.` },
        {
          selector: "CallExpression[callee.property.name='setAttribute'][arguments.0.value='style']",
          message: 'It is forbidden by the content security policy.',
        },
        { selector: 'JSXText[value=/[A-Za-z\\u4e00-\\u9fff]{2}/]', message: 'Texts are messages of i18n/.' },
        {
          selector:
            'JSXAttribute[name.name=/^(title|placeholder|label|aria-label|alt)$/] > Literal[value=/[A-Za-z]{2}/]',
          message: 'Texts are messages of i18n/.',
        },
        {
          selector: "MemberExpression[object.name='navigator'][property.name='clipboard']",
          message: 'It does not exist on plain http; use Copy.',
        },
        {
          selector: "MemberExpression[object.name='crypto'][property.name='randomUUID']",
          message: 'It does not exist on plain http.',
        },
      ],
    },
  },
  {
    files: ['src/components/**/*.tsx', 'src/pages/**/*.tsx', 'src/layout/**/*.tsx', 'src/signin/**/*.tsx'],
    ignores: ['**/*.test.tsx'],
    rules: { 'max-lines': ['error', 150] },
  },
  {
    files: ['src/samples/**', '**/*.test.{ts,tsx}'],
    rules: { 'no-restricted-syntax': 'off', '@typescript-eslint/no-non-null-assertion': 'off' },
  },
  {
    files: ['src/boot.js'],
    rules: { 'no-var': 'off', 'no-unused-vars': 'off', '@typescript-eslint/no-unused-vars': 'off' },
  },
);
