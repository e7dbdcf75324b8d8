import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import Markdown from './Markdown.svelte';

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
  // Not before 50 ms have passed since the last parse.
  expect(document.querySelectorAll('p')).toHaveLength(2);
  vi.advanceTimersByTime(60);
  flushSync();
  expect(document.querySelectorAll('p')).toHaveLength(3);
  expect(document.querySelector('p')).toBe(first);
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
  expect(pages().map((page, at) => page === before[at])).toEqual([true, true, false]);
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
