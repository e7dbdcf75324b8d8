import { flushSync, mount, unmount } from 'svelte';
import { expect, test, vi } from 'vitest';
import { Highlighter, languageOf, languageOfPath, type Line, type Painted, type Wanted } from './highlight';
import Page from './Page.svelte';

/** A fake worker that answers when the test says so. */
function played() {
  const asked: Wanted[] = [];
  const listeners: Record<string, (event: unknown) => void> = {};
  const port = {
    postMessage: (message: Wanted) => void asked.push(message),
    addEventListener: (type: string, listener: (event: unknown) => void) => void (listeners[type] = listener),
  };
  const start = vi.fn(() => port as unknown as Worker);
  const answer = (painted: Painted) => listeners['message']?.({ data: painted });
  const fail = () => listeners['error']?.({});
  return { asked, start, answer, fail, highlighter: new Highlighter(start) };
}

const lines: Line[] = [
  [
    ['tok-keyword', 'let'],
    ['', ' a'],
  ],
];

test.each([
  ['ts', 'typescript'],
  ['TS title="x"', 'typescript'],
  ['sh', 'shellscript'],
  ['python', 'python'],
  ['js{1,3}', 'javascript'],
  ['constructor', 'constructor'],
  ['', undefined],
  [undefined, undefined],
])('%s is %s', (info, language) => {
  expect(languageOf(info)).toBe(language);
});

test.each([
  ['a/b.go', 'go'],
  ['Makefile', 'make'],
  ['x/Dockerfile', 'docker'],
  ['a.test.TS', 'typescript'],
  ['.gitignore', 'gitignore'],
  ['LICENSE', undefined],
])('%s is %s', (path, language) => {
  expect(languageOfPath(path)).toBe(language);
});

test('the worker starts with the first code, and the same code is asked for once', async () => {
  const { asked, start, answer, highlighter } = played();
  expect(start).not.toHaveBeenCalled();
  const first = highlighter.paint('let a', 'typescript');
  const again = highlighter.paint('let a', 'typescript');
  void highlighter.paint('let a', 'go');
  expect(asked.map(({ language }) => language)).toEqual(['typescript', 'go']);
  answer({ id: 0, lines });
  expect(await first).toBe(lines);
  expect(await again).toBe(lines);
  expect(start).toHaveBeenCalledTimes(1);
});

test('without a worker code stays as it is', async () => {
  const broken = new Highlighter(() => {
    throw new Error('no workers here');
  });
  expect(await broken.paint('a', 'go')).toBeUndefined();
  const { fail, highlighter, start } = played();
  const waiting = highlighter.paint('a', 'go');
  fail();
  expect(await waiting).toBeUndefined();
  expect(await highlighter.paint('b', 'go')).toBeUndefined();
  expect(start).toHaveBeenCalledTimes(1);
});

test('very long code is not asked for', async () => {
  const { asked, highlighter } = played();
  expect(await highlighter.paint('x'.repeat(50_000), 'go')).toBeUndefined();
  expect(asked).toEqual([]);
});

test('colours are kept for so much code, the newest', () => {
  const { asked, highlighter } = played();
  const code = (n: number) => `${n}${'x'.repeat(30_000)}`;
  for (let n = 0; n < 20; n++) void highlighter.paint(code(n), 'go');
  expect(asked).toHaveLength(20);
  void highlighter.paint(code(19), 'go');
  void highlighter.paint(code(12), 'go');
  expect(asked).toHaveLength(20);
  void highlighter.paint(code(0), 'go');
  expect(asked).toHaveLength(21);
});

test('what was coloured is text still, whatever stands in it', () => {
  const host = document.createElement('div');
  const lines = [
    [['tok-string', '<img src=x onerror=alert(1)>'] as const, ['x" onclick="y', '&lt;'] as const],
    [],
  ];
  const page = mount(Page, { target: host, props: { text: '', lines } });
  flushSync();
  expect(host.querySelector('img, [onclick]')).toBeNull();
  expect(host.textContent).toBe('<img src=x onerror=alert(1)>&lt;\n\n');
  void unmount(page);
});
