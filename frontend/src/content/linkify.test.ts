import { describe, expect, test } from 'vitest';
import { linksIn } from './linkify';

/** The links of a text: the part that is a link, the path and the line. */
const links = (text: string) =>
  linksIn(text).map(({ start, end, path, line }) => {
    const said = text.slice(start, end);
    return line === undefined ? [said, path] : [said, path, line];
  });

/** The places of a text, as path:line. */
const places = (text: string) => linksIn(text).map(({ path, line }) => (line ? `${path}:${line}` : path));

describe('a path with its place', () => {
  test.each([
    ['src/a.py:42', 'src/a.py', 42],
    ['src/a.py:42:7', 'src/a.py', 42],
    ['src/a.py:42-50', 'src/a.py', 42],
    ['a.py(42,7)', 'a.py', 42],
    ['a.py(42, 7)', 'a.py', 42],
    ['a.py(42)', 'a.py', 42],
    ['src/a.py#L42', 'src/a.py', 42],
    ['src/a.py#L42-L50', 'src/a.py', 42],
    ['src/a.py#L42C3-L50', 'src/a.py', 42],
    ['main.go:12', 'main.go', 12],
    ['Makefile:3', 'Makefile', 3],
    ['./src/a.py:1', './src/a.py', 1],
    ['../other/a.py:1', '../other/a.py', 1],
    ['/home/ada/app/a.py:1', '/home/ada/app/a.py', 1],
    ['C:\\src\\a.py:42', 'C:\\src\\a.py', 42],
    ['C:/src/a.cs(42,7)', 'C:/src/a.cs', 42],
    ['src\\a.py:42', 'src\\a.py', 42],
    ['\\\\server\\share\\a.txt:2', '\\\\server\\share\\a.txt', 2],
    ['app/[id]/page.tsx:3', 'app/[id]/page.tsx', 3],
    ['node_modules/.pnpm/x@1.2.3/index.js:9:1', 'node_modules/.pnpm/x@1.2.3/index.js', 9],
    ['übung/größe.py:7', 'übung/größe.py', 7],
    ['source/日本.go:7', 'source/日本.go', 7],
  ])('%s', (text, path, line) => {
    expect(links(text)).toEqual([[text, path, line]]);
    expect(links(`See ${text}.`)).toEqual([[text, path, line]]);
    expect(links(`(${text})`)).toEqual([[text, path, line]]);
    expect(links(`[${text}]`)).toEqual([[text, path, line]]);
    expect(links(`"${text}", '${text}'`)).toEqual([
      [text, path, line],
      [text, path, line],
    ]);
    expect(links(`${text}: error`)).toEqual([[text, path, line]]);
  });
});

describe('a path alone', () => {
  test.each([
    'src/a.py',
    './a.py',
    'a/b/Makefile',
    'src/.eslintrc',
    '.github/workflows/ci.yml',
    'C:\\src\\a.py',
    'src/a.test.ts',
    'src/c++/a.hpp',
  ])('%s', (text) => {
    expect(links(text)).toEqual([[text, text]]);
    expect(links(`Look at ${text}.`)).toEqual([[text, text]]);
    expect(links(`Look at ${text}…`)).toEqual([[text, text]]);
    expect(links(`[${text}], (${text}): ${text}!`)).toEqual([
      [text, text],
      [text, text],
      [text, text],
    ]);
  });
});

test.each([
  'and/or',
  'TCP/IP',
  'application/json',
  'Node.js and Vue.js',
  'e.g. this, i.e. that',
  'a.py',
  'src/',
  '12:30 to 12:45',
  '2026-11-30T12:30:45',
  '1.2.3 and v1.25.0',
  'localhost:8080',
  '127.0.0.1:8080',
  'example.com:443 and db.internal:5432',
  'ada@example.org:22 and ada@host.py:22',
  '1/2 and 3.5/4.0',
  'https://example.com/src/a.py:42',
  'http://localhost:8080/src/a.py',
  'git+ssh://host/src/a.py:3',
  'https://github.com/a/b/blob/main/a.go#L12',
  '//cdn.example.com/a.js',
  '~/src/a.py and $HOME/src/a.py',
  '--config=a/b',
  'a...b/c.py',
  '@scope/name/index.js',
  'TODO: nothing',
  '',
])('no path: %s', (text) => {
  expect(links(text)).toEqual([]);
});

describe('stack traces and compilers', () => {
  test('of Python', () => {
    expect(links('  File "src/my file.py", line 42, in f')).toEqual([
      ['File "src/my file.py", line 42', 'src/my file.py', 42],
    ]);
    expect(links('  File "<stdin>", line 1, in <module>')).toEqual([]);
    expect(places('tests/test_a.py::test_x FAILED\ntests/test_a.py:12: AssertionError')).toEqual([
      'tests/test_a.py',
      'tests/test_a.py:12',
    ]);
  });

  test.each([
    ['    at f (src/a.ts:1:2)', 'src/a.ts:1'],
    ['    at async file:///home/ada/app/a.mjs:3:14', '/home/ada/app/a.mjs:3'],
    ['    at g (file:///C:/app/a.mjs:3:14)', 'C:/app/a.mjs:3'],
    ['    at node:internal/modules/cjs/loader:1105:15', ''],
    ['  --> src/main.rs:4:5', 'src/main.rs:4'],
    ['\t/home/ada/app/main.go:12 +0x1d', '/home/ada/app/main.go:12'],
    ['    main_test.go:31: got 1', 'main_test.go:31'],
    ['C:\\app\\a.cs(12,5): error CS1002: ; expected', 'C:\\app\\a.cs:12'],
    ['src/a.c:12:5: warning: unused', 'src/a.c:12'],
    ['PHP Fatal error in /srv/app/a.php on line 12', '/srv/app/a.php:12'],
    ["app/models/a.rb:12:in 'save'", 'app/models/a.rb:12'],
    ['src/a.ts:12:const x = 1', 'src/a.ts:12'],
    ['src/a.ts:12abc', 'src/a.ts'],
    ['--- a/src/a.go\n+++ b/src/a.go', 'src/a.go,src/a.go'],
    ['see a/src/a.go', 'a/src/a.go'],
  ])('%s', (text, found) => {
    expect(places(text).join()).toBe(found);
  });
});

test('links are in order and bounded, and a huge text has an end', () => {
  expect(places('b/b.go:2 File "a.py", line 1 c/c.go')).toEqual(['b/b.go:2', 'a.py:1', 'c/c.go']);
  expect(linksIn('a/b.go:1 '.repeat(5_000))).toHaveLength(500);
  expect(linksIn('['.repeat(400_000))).toEqual([]);
  expect(linksIn('a/'.repeat(200_000))).toEqual([]);
  expect(linksIn('File "'.repeat(50_000))).toEqual([]);
});
