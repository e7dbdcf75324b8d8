import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import Markdown from './Markdown.svelte';
import Placed from '../test/Placed.svelte';
import type { Places } from './places';

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  document.body.replaceChildren();
});

test('finished blocks keep their elements while text streams in', () => {
  const props = $state({ text: 'One.\n\nTw', live: true });
  const component = mount(Markdown, { target: document.body, props });
  flushSync();
  const first = document.querySelector('p');
  props.text = 'One.\n\nTwo.\n\nThree';
  flushSync();
  // The next parse comes 50 ms after the last.
  expect(document.querySelectorAll('p')).toHaveLength(2);
  vi.advanceTimersByTime(60);
  flushSync();
  expect(document.querySelectorAll('p')).toHaveLength(3);
  expect(document.querySelector('p')).toBe(first);
  void unmount(component);
});

test('a paragraph that grows is added to, also where it is selected', () => {
  const props = $state({ text: 'One **two** thr', live: true });
  const component = mount(Markdown, { target: document.body, props });
  flushSync();
  const paragraph = document.querySelector('p') as HTMLElement;
  document.getSelection()?.selectAllChildren(document.querySelector('strong') as HTMLElement);
  props.text = 'One **two** three, four';
  vi.advanceTimersByTime(60);
  flushSync();
  expect(document.querySelector('p')).toBe(paragraph);
  expect(paragraph.textContent).toBe('One two three, four');
  expect(document.getSelection()?.toString()).toBe('two');
  void unmount(component);
});

test('pages of code that are full are not drawn anew while more comes', () => {
  const lines = (count: number) => Array.from({ length: count }, (_, n) => `line ${n}`).join('\n');
  const props = $state({ text: '```\n' + lines(90), live: true });
  const component = mount(Markdown, { target: document.body, props });
  flushSync();
  const pages = () => [...document.querySelectorAll('code > span')].map((page) => page.firstChild);
  const before = pages();
  expect(before).toHaveLength(3);
  props.text = '```\n' + lines(100);
  vi.advanceTimersByTime(60);
  flushSync();
  expect(document.querySelector('code')?.textContent).toBe(`${lines(100)}\n`);
  // Only the last page grows.
  expect(pages().map((page, at) => page === before[at])).toEqual([true, true, true]);
  void unmount(component);
});

test('lists and tables keep what stands in them while they grow', () => {
  const list = '- one\n- two **b**\n  - deep\n- [x] done';
  const table = '| a | b |\n|---|--:|\n| `1` | 2 |\n| 3 | x <br> y |';
  const props = $state({ text: list, live: true });
  const component = mount(Markdown, { target: document.body, props });
  const grow = (text: string) => {
    props.text = text;
    vi.advanceTimersByTime(60);
    flushSync();
  };
  const all = () => [...document.querySelectorAll('.part > ul > li, tr')];
  flushSync();
  const items = all();
  expect(items).toHaveLength(3);
  grow(`${list}\n- last`);
  expect(all().map((item, at) => item === items[at])).toEqual([true, true, true, false]);
  grow(`${list}\n- last\n\n${table}`);
  const before = all();
  grow(`${list}\n- last\n\n${table}\n| 5 | 6 |`);
  expect(all()).toHaveLength(before.length + 1);
  expect(all().slice(0, before.length)).toEqual(before);
  void unmount(component);
});

test.each([
  '- a\n- b **c**\n  1. d\n  2. e\n- [ ] f\n- [x] g',
  '3. a\n4. b\n\n   ```js\n   x < y\n   ```\n5. c',
  '- a\n\n- b\n\n  more\n- c',
  '1. a <b>bold</b>\n2. b <script>alert(1)</script> [x](javascript:alert(1))',
  '| a | `b` |\n|:-:|--:|\n| 1 | [l](https://example.com) |\n| <img src=x onerror=alert(1)> | |',
  '| a |\n|---|',
])('what has streamed in looks as what stands: %s', (text) => {
  const shown = (live: boolean) => {
    const props = $state({ text: text.slice(0, 1), live });
    const component = mount(Markdown, { target: document.body, props });
    for (let end = 2; end < text.length + 9; end += 9) {
      props.text = text.slice(0, end);
      vi.advanceTimersByTime(60);
      flushSync();
    }
    const { innerHTML = '', textContent = '' } = document.querySelector('.markdown') ?? {};
    void unmount(component);
    const html = innerHTML
      .replace(/<!--.*?-->/g, '')
      .replace(/\s+/g, ' ')
      .replace(/ ?(<\/?(?:li|ul|ol|div|table|thead|tbody|tr|td|th|p)\b[^>]*>) ?/g, '$1');
    return { html, text: textContent.replace(/\s+/g, ' ').trim() };
  };
  expect(shown(true)).toEqual(shown(false));
});

test('a tag that an item does not close ends with it', () => {
  const props = { text: '- a <b>open\n- b', live: true };
  const component = mount(Markdown, { target: document.body, props });
  expect([...document.querySelectorAll('b')].map((bold) => bold.textContent)).toEqual(['open']);
  void unmount(component);
});

test('the end is shown at once, with links that were defined late', () => {
  const props = $state({ text: 'See [it][1].\n\nMore', live: true });
  const component = mount(Markdown, { target: document.body, props });
  flushSync();
  props.text = 'See [it][1].\n\nMore.\n\n[1]: https://example.com';
  props.live = false;
  flushSync();
  expect(document.querySelector('a')?.getAttribute('href')).toBe('https://example.com/');
  void unmount(component);
});

test('links go through the shell, and code is copied', async () => {
  const open = vi.spyOn(window, 'open').mockReturnValue(null);
  const writeText = vi.fn(() => Promise.resolve());
  Object.assign(navigator, { clipboard: { writeText } });
  const text = '[a](https://example.com)\n\n```\ncode\n```';
  const component = mount(Markdown, { target: document.body, props: { text } });
  flushSync();
  document.querySelector('a')?.click();
  expect(open).toHaveBeenCalledWith('https://example.com/', '_blank', 'noopener,noreferrer');
  document.querySelector<HTMLButtonElement>('button[data-copy]')?.click();
  await vi.waitFor(() => expect(writeText).toHaveBeenCalledWith('code'));
  void unmount(component);
});

test('what stood there stays when the text streams once more', () => {
  // Several parts, of which only the last changes.
  const of = (n: number) =>
    `- one\n- two\n\nBelow list ${n}.\n\n| a |\n| - |\n| b |\n\nBelow table ${n}.\n\n`;
  const text = Array.from({ length: 30 }, (_, n) => of(n)).join('');
  const props = $state({ text, live: false });
  const component = mount(Markdown, { target: document.body, props });
  flushSync();
  const said = () => document.body.textContent?.replace(/\s+/g, ' ').trim() ?? '';
  const all = said();
  expect(all).toContain('Below list 0.');
  expect(document.querySelectorAll('.part').length).toBeGreaterThan(2);
  props.live = true;
  props.text = `${text}And more.`;
  vi.advanceTimersByTime(60);
  flushSync();
  expect(said()).toBe(`${all} And more.`);
  void unmount(component);
});

test('what came last with the end has its button to show a picture', async () => {
  const webPicture = () => new Promise<Blob>(() => undefined);
  const places: Places = {
    directories: [],
    existing: async () => new Set<string>(),
    open: () => undefined,
    webPicture,
  };
  const picture = '![the lamp](https://pictures.example/lamp.png)';
  for (const [before, after] of [
    ['The', `The lamp:\n\n${picture}`],
    [`The lamp:\n\n${picture}`, `The lamp:\n\n${picture}\n\nSo far.`],
    [`The ${picture} lam`, `The ${picture} lamp.`],
  ] as const) {
    const props = $state({ places, text: before, live: true });
    const component = mount(Placed, { target: document.body, props });
    flushSync();
    Object.assign(props, { text: after, live: false });
    flushSync();
    await Promise.resolve();
    expect(document.querySelectorAll('.remote button'), after).toHaveLength(1);
    void unmount(component);
  }
});
