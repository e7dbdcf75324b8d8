// @vitest-environment node
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

// WebKit keeps the style of an element for the next one that is like it, by the rules that it has and the variables that it inherits,
// and lets go of it only when rules come or go. What is never like anything again stays for as long as the page.

const root = join(import.meta.dirname, '..');
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.(svelte|css)$/.test(name))
  .map((name) => ({ name, source: readFileSync(join(root, name), 'utf8') }));

test('no rule asks what is in an element: with one, a window kept 0.1 MiB more for each conversation that was opened', () => {
  const asking = files.filter(({ source }) => /^[^/*]*:has\(/m.test(source)).map(({ name }) => name);
  expect(asking).toEqual([]);
});

test('elements that come and go have no variables of their own: 0.4 MiB for each transcript', () => {
  // The first two are there once; below the others there is nothing.
  const alone = ['App.svelte', 'settings/Settings.svelte', 'browse/Source.svelte', 'content/Output.svelte'];
  const own = files.filter(({ source }) => source.includes('style:--')).map(({ name }) => name);
  expect(own.sort()).toEqual(alone.sort());
});
