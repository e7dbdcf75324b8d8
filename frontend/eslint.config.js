import js from '@eslint/js';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';
import svelteConfig from './svelte.config.js';

// A feature is a folder that shows one thing. Features see the floor below them, never each other; App.svelte puts them together, and so do
// the tabs of the side panel that show what others keep (changes, plan, inspect).
const features = [
  'session',
  'inbox',
  'composer',
  'start',
  'sidebar',
  'palette',
  'login',
  'status',
  'equip',
  'search',
  'browse',
  'shells',
];
const floor = ['api', 'content', 'markdown', 'shell', 'strings', 'ui'];

const layers = [
  ...features.map((feature) => ({
    files: [`src/${feature}/**/*.{ts,svelte}`],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: features
            .filter((other) => other !== feature)
            .map((other) => ({
              group: [`**/${other}/*`, `**/${other}/**`],
              message:
                'A feature never imports another one: App.svelte or Conversation.svelte puts them together.',
            })),
        },
      ],
    },
  })),
  {
    files: floor.map((folder) => `src/${folder}/**/*.{ts,svelte}`),
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            ...features.map((feature) => ({
              group: [`**/${feature}/*`],
              message: 'The floor knows no feature.',
            })),
            { group: ['**/state/*'], message: 'The floor does not know the state of the page.' },
          ],
        },
      ],
    },
  },
];

export default ts.config(
  { ignores: ['dist', 'wailsjs', 'src/api/schema.d.ts'] },
  js.configs.recommended,
  ...ts.configs.strict,
  ...svelte.configs.recommended,
  ...svelte.configs.prettier,
  {
    languageOptions: { globals: { ...globals.browser } },
    rules: {
      'no-undef': 'off', // TypeScript does this
      'no-console': 'error',
      eqeqeq: 'error',
      'no-restricted-globals': [
        'error',
        {
          name: 'MessageChannel',
          message:
            'WebKit keeps a little of each for good, in another process. For a task after the frame a timer does.',
        },
      ],
      // What safari16, for which this is built, lacks of the page's objects. What it lacks of the language tsconfig's lib does not have.
      'no-restricted-properties': [
        'error',
        { object: 'AbortSignal', property: 'any', message: 'WebKit has it since 17.4: use api/limit.ts.' },
        {
          object: 'URL',
          property: 'canParse',
          message: 'WebKit has it since 17: let the constructor throw.',
        },
        { object: 'URL', property: 'parse', message: 'WebKit has it since 18: let the constructor throw.' },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: {
      parserOptions: { extraFileExtensions: ['.svelte'], parser: ts.parser, svelteConfig },
    },
    rules: {
      'svelte/no-at-html-tags': 'error',
      'svelte/block-lang': ['error', { script: 'ts' }],
      'svelte/button-has-type': 'error',
      // A plain Map or Set is meant where one stands: reading it is to make nothing depend on it.
      'svelte/prefer-svelte-reactivity': 'off',
      'svelte/no-inline-styles': 'off',
      'svelte/prefer-const': 'error',
    },
  },
  {
    files: ['*.config.{js,ts}', 'src/**/*.test.ts'],
    languageOptions: { globals: { ...globals.node } },
  },
  ...layers,
);
