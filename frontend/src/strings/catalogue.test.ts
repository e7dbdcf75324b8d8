// @vitest-environment node
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'svelte/compiler';
import { describe, expect, test } from 'vitest';
import { agents } from './agents';
import { answers } from './answers';
import { applying } from './applying';
import { attachments } from './attachments';
import { browse } from './browse';
import { cards } from './cards';
import { changes } from './changes';
import { compare } from './compare';
import { discord } from './discord';
import { en } from './en';
import { equip } from './equip';
import { inspect } from './inspect';
import { keyboard } from './keyboard';
import { landing } from './landing';
import { limits } from './limits';
import { output } from './output';
import { pages } from './pages';
import { panel } from './panel';
import { preferences } from './preferences';
import { pulls } from './pulls';
import { queue } from './queue';
import { screens } from './screens';
import { settings } from './settings';
import { setup } from './setup';
import { start } from './start';
import { usage } from './usage';
import { branches } from './branches';
import { subagents } from './subagents';
import { head } from './head';
import { work } from './work';
import { working } from './working';
import { worktree } from './worktree';

// Checks that the catalogue has every text of the screen, and no unused text.

const root = join(import.meta.dirname, '..');
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter(
    (name) =>
      /\.(svelte|ts)$/.test(name) &&
      !/\.test\.ts$|^test\/|strings\/(?:agents|answers|applying|attachments|branches|browse|cards|changes|compare|discord|en|equip|head|inspect|keyboard|landing|limits|output|pages|panel|preferences|pulls|queue|screens|settings|setup|start|subagents|work|working|worktree)\.ts$|records\.ts$|schema\.d\.ts$/.test(
        name,
      ),
  )
  .map((name) => ({ name, source: readFileSync(join(root, name), 'utf8') }));
const parts = [
  agents,
  answers,
  applying,
  attachments,
  browse,
  cards,
  changes,
  compare,
  discord,
  en,
  equip,
  inspect,
  keyboard,
  landing,
  limits,
  output,
  pages,
  panel,
  preferences,
  pulls,
  queue,
  screens,
  settings,
  setup,
  start,
  usage,
  branches,
  subagents,
  head,
  work,
  working,
  worktree,
];
const keys = parts.flatMap((part) => Object.keys(part));

/** Keys written out, counted keys by their stem, and prefixes of composed keys. */
const literals = new Set(
  files.flatMap(({ source }) => [...source.matchAll(/'([a-z][\w.]*)'/g)].map((match) => match[1] ?? '')),
);
const prefixes = files.flatMap(({ source }) =>
  [...source.matchAll(/\b(?:t|lookup)\(\s*`([a-z][\w.]*)\$\{/g)].map((match) => match[1] ?? ''),
);
const stem = (key: string) => key.replace(/\.(one|other)$/, '');

describe('the catalogue', () => {
  test('has nothing that is not used', () => {
    const unused = keys.filter(
      (key) =>
        !literals.has(key) && !literals.has(stem(key)) && !prefixes.some((prefix) => key.startsWith(prefix)),
    );
    expect(unused).toEqual([]);
  });

  test('has nothing twice', () => {
    expect(keys.filter((key, at) => keys.indexOf(key) !== at)).toEqual([]);
  });

  test('has everything that is used', () => {
    const called = files.flatMap(({ source }) =>
      [...source.matchAll(/\b(t|tn)\(\s*'([^']+)'/g)].map((match) => [match[1], match[2] ?? ''] as const),
    );
    const missing = called.filter(
      ([how, key]) => !(how === 'tn' ? keys.includes(`${key}.other`) : keys.includes(key)),
    );
    expect(missing).toEqual([]);
    expect(prefixes.filter((prefix) => !keys.some((key) => key.startsWith(prefix)))).toEqual([]);
  });

  test('has both forms of every counted text', () => {
    const counted = keys.filter((key) => key.endsWith('.one') || key.endsWith('.other'));
    const alone = counted.filter(
      (key) => !keys.includes(`${stem(key)}.one`) || !keys.includes(`${stem(key)}.other`),
    );
    expect(alone).toEqual([]);
  });
});

interface Node {
  type: string;
  [member: string]: unknown;
}

/** Attributes that people read or hear. */
const spoken = new Set([
  'title',
  'placeholder',
  'alt',
  'label',
  'aria-label',
  'aria-description',
  'aria-roledescription',
]);
/** Signs are the same in every language; letters are not. */
const words = /\p{L}/u;

/** Returns the texts of a template that people would read and that do not come from the catalogue. */
function texts(node: unknown, found: string[], read = false): string[] {
  if (Array.isArray(node)) {
    for (const one of node) texts(one, found, read);
    return found;
  }
  if (typeof node !== 'object' || node === null) return found;
  const { type, ...members } = node as Node;
  switch (type) {
    case 'Text':
      if (words.test(String(members['data']))) found.push(String(members['data']).trim());
      return found;
    case 'Attribute': {
      const value = members['value'];
      if (spoken.has(String(members['name']))) texts(value, found, true);
      return found;
    }
    case 'Literal':
      if (read && typeof members['value'] === 'string' && words.test(members['value']))
        found.push(members['value']);
      return found;
    case 'TemplateElement':
      if (read && words.test(String((members['value'] as { raw: string }).raw)))
        found.push(String((members['value'] as { raw: string }).raw));
      return found;
    case 'CallExpression':
      return found; // the texts inside a call are keys
    case 'ConditionalExpression':
      texts([members['consequent'], members['alternate']], found, read);
      return found;
    case 'BinaryExpression':
    case 'MemberExpression':
      return found;
    case 'ExpressionTag':
      texts(members['expression'], found, true);
      return found;
    case 'StyleDirective':
    case 'Script':
    case 'StyleSheet':
    case 'Comment':
      return found;
  }
  for (const member of Object.values(members)) texts(member, found, read);
  return found;
}

describe('templates', () => {
  test.each(files.filter(({ name }) => name.endsWith('.svelte')))(
    '$name has no words of its own',
    ({ source }) => {
      const { fragment } = parse(source, { modern: true });
      expect(texts(fragment, [])).toEqual([]);
    },
  );

  test('that have words are found', () => {
    const bad = `<p>Hello</p><a title="There">{cond ? 'Yes' : t('no')}</a><i aria-label={\`In \${x}\`}></i>`;
    expect(texts(parse(bad, { modern: true }).fragment, [])).toEqual(['Hello', 'There', 'Yes', 'In ']);
    const good = `<p class="row">{t('key')} · {n}</p><a href="/x" title={t('key')}>{name}</a>`;
    expect(texts(parse(good, { modern: true }).fragment, [])).toEqual([]);
  });
});
