// @vitest-environment node
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

// Rules of all style sheets whose breach people would notice and no other test would.

const root = join(import.meta.dirname, '..');
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.(svelte|css)$/.test(name))
  .map((name) => ({ name, source: readFileSync(join(root, name), 'utf8') }));

const against = (rule: RegExp) => files.filter(({ source }) => rule.test(source)).map(({ name }) => name);

test('nothing is drawn with a gradient or a blur, which are slow in WebKitGTK: an edge is a line', () => {
  expect(against(/\bgradient\(|filter:\s*blur|backdrop-filter/)).toEqual([]);
});

test('text has the sizes of the tokens: a size in pixels stays as it is when a person makes the text larger', () => {
  expect(against(/\bfont(-size)?:[^;}]*\dpx/)).toEqual([]);
});

// WebKit keeps the style of an element for the next similar element, by the matching rules and inherited variables, and drops such styles
// only when rules change. A style that never matches another element stays for the life of the page.

test('no rule asks what is in an element: with one, a window kept 0.1 MiB more for each conversation that was opened', () => {
  expect(against(/^[^/*]*:has\(/m)).toEqual([]);
});

test('elements that come and go have no variables of their own: 0.4 MiB for each transcript', () => {
  // The first two exist once; below the others are no elements.
  const alone = ['App.svelte', 'browse/Source.svelte', 'content/Runs.svelte'];
  expect(against(/style:--/).sort()).toEqual(alone.sort());
});

test('cells of tables have a unit of a container, so that their styles are not kept: 20 kB for each table that was ever drawn', () => {
  expect(against(/^th,\ntd \{\n {2}outline-offset: 0cqi;\n\}/m)).toEqual(['styles/base.css']);
});

test('every variable that a style uses is defined somewhere', () => {
  const all = files.map(({ source }) => source).join('\n');
  const defined = new Set([...all.matchAll(/(--[\w-]+)(?=\s*:|=)/g)].map(([, name]) => name));
  const used = [...all.matchAll(/var\((--[\w-]+)/g)].map(([, name]) => name);
  expect(used.length).toBeGreaterThan(300);
  expect(used.filter((name) => !defined.has(name))).toEqual([]);
});

test('a shared class is as weak as a single class, so that a rule of a component is stronger', () => {
  const css = files
    .find(({ name }) => name === join('styles', 'parts.css'))
    ?.source.replace(/\/\*[^]*?\*\//g, '');
  const selectors = [...(css ?? '').matchAll(/([^{}]+)\{/g)].map(([, selector = '']) => selector.trim());
  expect(selectors.length).toBeGreaterThan(40);
  expect(selectors.filter((one) => !/^\.[\w-]+(:[\w-]+)?(:where\(.+\))?$/.test(one))).toEqual([]);
});
