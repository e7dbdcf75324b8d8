import { beforeAll, describe, expect, test, vi } from 'vitest';
import { whole } from './blocks';
import { codeRef, lookupOf } from './lookup';
import { extras } from './late';
import { candidates, linkRef } from './paths';
import type { Places } from './places';
import { html, rendering } from './render';

beforeAll(() => extras.load());

const places = (over: Partial<Places> = {}): Places => ({
  directories: ['/home/ada/app', '/home/ada/lib'],
  existing: () => Promise.resolve(new Set<string>()),
  open: () => undefined,
  ...over,
});

describe('a link to a file', () => {
  test.each([
    ['src/main.go', 'src/main.go', undefined],
    ['src/main.go:12', 'src/main.go', 12],
    ['src/main.go:12:5', 'src/main.go', 12],
    ['src/main.go:12-20', 'src/main.go', 12],
    ['src/main.go#L12', 'src/main.go', 12],
    ['src/main.go#L12-L20', 'src/main.go', 12],
    ['src/main.go#L12-20', 'src/main.go', 12],
    ['src/main.go#L12C3', 'src/main.go', 12],
    ['src/main.ts(12,5)', 'src/main.ts', 12],
    ['./src/main.go', './src/main.go', undefined],
    ['main.go:12', 'main.go', 12],
    ['Makefile:3', 'Makefile', 3],
    ['README.md#install', 'README.md', undefined],
    ['/home/ada/app/src/main.go#L3', '/home/ada/app/src/main.go', 3],
    ['file:///home/ada/app/a%20b.md', '/home/ada/app/a b.md', undefined],
    ['file://localhost/home/ada/app/x.go#L4', '/home/ada/app/x.go', 4],
    ['file:/home/ada/app/x.go', '/home/ada/app/x.go', undefined],
    ['a%20file.go:2', 'a file.go', 2],
    ['a%23b.go', 'a#b.go', undefined],
    ['100%.md', '100%.md', undefined],
    ['app/[id]/(group)/page.tsx', 'app/[id]/(group)/page.tsx', undefined],
    ['日本/ファイル.md:7', '日本/ファイル.md', 7],
    ['C:\\app\\main.go:3', 'C:\\app\\main.go', 3],
    ['file:///C:/app/main.go', 'C:/app/main.go', undefined],
  ])('names a path, and a line: %s', (href, path, line) => {
    expect(linkRef(href)).toEqual({ path, line });
  });

  test.each([
    'https://example.com/a',
    'javascript:alert(1)',
    'javascript:1',
    'JAVASCRIPT:x',
    'data:text/html,x',
    'vscode://file/x',
    'file://server/share/x',
    'file:////server/x',
    '//example.com/x',
    '\\\\server\\share',
    '#section',
    '?query',
    '~/secret',
    'localhost:8080',
    'tel:12345',
    'a\u0000b',
    'a%00b',
    'src/\u202egpj.exe',
    '',
  ])('is none: %s', (href) => {
    expect(linkRef(href)).toBeUndefined();
  });

  test.each([
    ['src/main.go', ['/home/ada/app/src/main.go', '/home/ada/lib/src/main.go']],
    ['../lib/x.go', ['/home/ada/lib/x.go']],
    ['../../../etc/passwd', []],
    ['src/../../x', []],
    ['/etc/passwd', []],
    ['/home/ada/app/../../../etc/passwd', []],
    ['/home/ada/apple/x', []],
    ['/home/ada/app', ['/home/ada/app']],
    ['src//./a.go', ['/home/ada/app/src/a.go', '/home/ada/lib/src/a.go']],
  ])('leads into the directories of the conversation alone: %s', (path, want) => {
    expect(candidates({ path, line: undefined }, places())).toEqual(want);
  });

  test('of Windows, and one in a file that is shown', () => {
    const windows = { directories: ['C:\\app'] };
    expect(candidates({ path: 'src/main.go', line: 1 }, windows)).toEqual(['C:\\app\\src\\main.go']);
    expect(candidates({ path: 'c:/app/x.go', line: 1 }, windows)).toEqual(['c:\\app\\x.go']);
    expect(candidates({ path: 'D:\\x.go', line: 1 }, windows)).toEqual([]);
    const shown = { directories: ['/app'], base: '/app/docs' };
    expect(candidates({ path: '../src/x.go', line: 1 }, shown)).toEqual(['/app/src/x.go']);
    expect(candidates({ path: 'b.md', line: 1 }, shown)).toEqual(['/app/docs/b.md']);
  });

  test('can be followed, and every other one is dead text', () => {
    const rendered = (source: string, of?: Places) => {
      const host = document.createElement('div');
      host.innerHTML = rendering(of, () => html(...whole(source).blocks.map(({ token }) => token)));
      return host;
    };
    const good = rendered('[main.go](src/main.go:12) [b](<src/a b.go>) ![chart](out/c.png)', places());
    expect([...good.querySelectorAll('a.path')].map((one) => one.getAttribute('data-path'))).toEqual([
      'src/main.go:12',
      'src/a b.go',
      'out/c.png',
    ]);
    expect(good.querySelector('a')?.hasAttribute('href')).toBe(false);
    for (const href of ['../../etc/passwd', '/etc/passwd', 'javascript:alert(1)', 'file:///etc/passwd', '#x'])
      expect(rendered(`[x](${href})`, places()).querySelector('a'), href).toBeNull();
    expect(rendered('[main.go](src/main.go:12)').querySelector('a')).toBeNull();
    const quoted = rendered('[x](<a"onclick="alert(1)>)', places()).querySelector('a');
    expect(quoted?.getAttributeNames().sort()).toEqual(['class', 'data-path', 'role', 'tabindex', 'title']);
  });
});

describe('code within a line', () => {
  test.each([
    ['src/main.go:12', 'src/main.go', 12],
    ['main.go', 'main.go', undefined],
    ['./a/b', './a/b', undefined],
    ['src/main.go#L3-L9', 'src/main.go', 3],
    ['.env', '.env', undefined],
    ['Dockerfile', 'Dockerfile', undefined],
    ['docs/my file.md', 'docs/my file.md', undefined],
  ])('may name a file: %s', (code, path, line) => {
    expect(codeRef(code)).toEqual({ path, line });
  });

  test.each([
    'npm install',
    '--flag',
    '$HOME/x.go',
    'https://example.com/x.go',
    'a | b.go',
    'src/',
    'x',
    'a = b.c',
    '*.go',
    '<b.c>',
  ])('is none: %s', (code) => expect(codeRef(code)).toBeUndefined());

  test('is looked up with others at once, and kept', async () => {
    const existing = vi.fn((paths: readonly string[]) =>
      Promise.resolve(new Set(paths.filter((path) => path === '/home/ada/lib/x.go'))),
    );
    const lookup = lookupOf(places({ existing }));
    const asked = ['x.go:4', 'y.go', 'x.go'];
    const found = await Promise.all(asked.map((code) => lookup.ofCode(code)));
    expect(found).toEqual([
      { path: '/home/ada/lib/x.go', line: 4 },
      undefined,
      { path: '/home/ada/lib/x.go', line: undefined },
    ]);
    expect(await lookup.ofCode('x.go:9')).toEqual({ path: '/home/ada/lib/x.go', line: 9 });
    expect(existing.mock.calls).toEqual([
      [['/home/ada/app/x.go', '/home/ada/lib/x.go', '/home/ada/app/y.go', '/home/ada/lib/y.go']],
    ]);
    // The Files tab says that the file of a link does not exist.
    expect(await lookup.ofLink('y.go')).toEqual({ path: '/home/ada/app/y.go', line: undefined });
  });

  test('of many a call asks for no more than the server takes, and a failed call finds nothing', async () => {
    const existing = vi.fn((paths: readonly string[]) =>
      paths.length < 200 ? Promise.reject(new Error('gone')) : Promise.resolve(new Set(paths)),
    );
    const lookup = lookupOf(places({ directories: ['/app'], existing }));
    const found = await Promise.all(Array.from({ length: 250 }, (_, n) => lookup.ofCode(`f${n}.go`)));
    expect(existing.mock.calls.map(([paths]) => paths.length)).toEqual([200, 50]);
    expect(found.map((ref) => ref !== undefined).lastIndexOf(true)).toBe(199);
  });
});
