import { afterEach, expect, test, vi } from 'vitest';
import { flushSync, mount, tick } from 'svelte';
import { linkFiles } from './files';
import type { Line } from './highlight';
import Page from './Page.svelte';
import type { Places } from './places';

afterEach(() => document.body.replaceChildren());

function shown(html: string, fill: (host: HTMLElement) => void = () => undefined) {
  const existing = vi.fn((paths: readonly string[]) =>
    Promise.resolve(new Set(paths.filter((path) => path.endsWith('a.go')))),
  );
  const places: Places = { directories: ['/app'], existing, open: () => undefined };
  const host = document.createElement('div');
  host.innerHTML = html;
  fill(host);
  document.body.append(host);
  return { host, existing, end: linkFiles(host, places) };
}

const files = (host: Element) =>
  [...host.querySelectorAll<HTMLElement>('[data-file]')].map(({ textContent, dataset }) => [
    textContent,
    dataset['file'],
    dataset['line'],
  ]);

test('the files that exist become links, in code and in words, by one question', async () => {
  const { host, existing } = shown(
    '<p>See src/a.go:3, src/b.go:4 and <em>lib/a.go</em>. <code>a.go:7</code> <code>b.go</code></p>' +
      '<pre><code>src/a.go:1</code></pre><a data-path="src/a.go">src/a.go</a>',
  );
  const words = host.textContent;
  await vi.waitFor(() => expect(files(host).length).toBe(4));
  expect(files(host)).toEqual([
    ['src/a.go:3', '/app/src/a.go', '3'],
    ['lib/a.go', '/app/lib/a.go', undefined],
    ['a.go:7', '/app/a.go', '7'],
    ['src/a.go:1', '/app/src/a.go', '1'],
  ]);
  expect(host.textContent).toBe(words);
  expect(existing.mock.calls.map(([paths]) => [...paths].sort())).toEqual([
    ['/app/a.go', '/app/b.go', '/app/lib/a.go', '/app/src/a.go', '/app/src/b.go'],
  ]);
  expect(host.querySelector('[data-file]')?.role).toBe('link');
});

test('of a text with very many files some are looked up', async () => {
  const { host, existing } = shown(
    `<p>${Array.from({ length: 900 }, (_, n) => `d/${n}/a.go`).join(' ')}</p>`,
  );
  await vi.waitFor(() => expect(files(host).length).toBe(300));
  expect(existing).toHaveBeenCalledTimes(2);
});

test('a part that has left the page meanwhile stays as it was', async () => {
  const { host, existing, end } = shown('<p>src/a.go:3</p>');
  end();
  await vi.waitFor(() => expect(existing).toHaveBeenCalled());
  await Promise.resolve();
  expect(host.innerHTML).toBe('<p>src/a.go:3</p>');
});

test('links in code keep its colours, and come again when the colours come later', async () => {
  const props = $state({ text: 'see src/a.go:3\nb.go:1\n', lines: undefined as readonly Line[] | undefined });
  const { host, end, existing } = shown('<pre><code></code></pre>', (element) => {
    mount(Page, { target: element.querySelector('code') as Element, props });
    flushSync();
  });
  const words = host.textContent;
  await vi.waitFor(() => expect(files(host)).toEqual([['src/a.go:3', '/app/src/a.go', '3']]));
  props.lines = [
    [
      ['', 'see '],
      ['tok-string', 'src/'],
      ['tok-keyword', 'a.go:3'],
    ],
  ];
  await tick();
  expect(host.textContent).toBe(words);
  expect(files(host)).toEqual([['src/a.go:3', '/app/src/a.go', '3']]);
  expect(
    [...host.querySelectorAll('a span')].map(({ className, textContent }) => [className, textContent]),
  ).toEqual([
    ['tok-string', 'src/'],
    ['tok-keyword', 'a.go:3'],
  ]);
  expect(existing).toHaveBeenCalledTimes(1);
  end();
  await tick();
  expect(files(host)).toEqual([]);
  expect(host.textContent).toBe(words);
});
