import js from '@eslint/js';
import svelte from 'eslint-plugin-svelte';
import globals from 'globals';
import ts from 'typescript-eslint';
import svelteConfig from './svelte.config.js';

// A feature is a folder that shows one thing. Features see the floor below them and the state, and never each other, outside of the pairs
// that stand here; App.svelte and Conversation.svelte put them together.
const features = {
  attachments: ['composer'], // the shelf saves its files as the composer saves its text
  browse: ['attachments'],
  changes: [],
  commands: ['palette', 'session', 'sidebar', 'worktree'],
  compare: ['changes', 'inbox', 'worktree'],
  composer: ['attachments'],
  equip: [],
  inbox: ['rules', 'worktree'], // a set-up that holds an agent is among what waits
  inspect: [],
  login: ['terminal'],
  palette: ['attachments'],
  panel: ['browse', 'changes', 'inspect', 'plan', 'shells'],
  plan: ['attachments', 'inspect', 'session'],
  rules: [],
  search: [],
  session: ['attachments', 'changes'],
  settings: ['commands', 'equip', 'rules', 'startmode'],
  shells: ['terminal'],
  sidebar: ['worktree'],
  start: ['attachments', 'composer', 'startmode', 'worktree'],
  startmode: [],
  status: ['settings'],
  terminal: [],
  titlebar: [],
  worktree: [],
};
const floor = ['api', 'content', 'markdown', 'shell', 'strings', 'ui'];

/** Forbids imports of other folders in the files of a folder. */
function closed(folder, forbidden, message) {
  const others = forbidden.join('|');
  return {
    files: [`src/${folder}/**/*.{ts,svelte}`],
    ignores: ['src/**/*.test.ts'],
    rules: {
      'no-restricted-imports': ['error', { patterns: [{ regex: `^(\\.\\./)+(${others})/`, message }] }],
      'no-restricted-syntax': [
        'error',
        { selector: `ImportExpression[source.value=/^(\\.\\.\\u002F)+(${others})\\u002F/]`, message },
      ],
    },
  };
}

const layers = [
  ...Object.entries(features).map(([feature, allowed]) =>
    closed(
      feature,
      Object.keys(features).filter((other) => other !== feature && !allowed.includes(other)),
      'A feature imports only the features of its row in eslint.config.js.',
    ),
  ),
  closed('state', Object.keys(features), 'The state knows no feature.'),
  ...floor.map((folder) =>
    closed(folder, [...Object.keys(features), 'state'], 'The floor knows neither features nor the state.'),
  ),
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
