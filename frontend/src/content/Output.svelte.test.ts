import './OutputPages.svelte'; // loaded with the first press otherwise, which takes long on a busy machine
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import Output from './Output.svelte';
import type { Gap, Source } from './outputs';

// The head and the tail of a long output, and the pages of the rest.

let ended: (() => void) | undefined;

beforeEach(() => {
  vi.restoreAllMocks();
});
afterEach(() => ended?.());

function show(props: { text: string; gap?: Gap; source?: Source }) {
  const made = mount(Output, { target: document.body, props });
  ended = () => void unmount(made);
  flushSync();
}

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => `line ${from + n}\n`).join('');
/** The box's text; blanks around elements are dropped. */
const shown = () =>
  (document.querySelector('.box')?.textContent ?? '').replaceAll(/ *… (.*?between) */g, '… $1');
const button = (name: string) =>
  [...document.querySelectorAll<HTMLButtonElement>('button')].find(
    (one) => one.textContent.trim() === name || one.getAttribute('aria-label') === name,
  );
async function press(name: string) {
  button(name)?.click();
  await vi.waitFor(() => {
    flushSync();
    expect(document.querySelector('pre[aria-label="The whole output"]')).not.toBeNull();
  });
}

test('a short output is whole', () => {
  show({ text: numbered(0, 200) });
  expect(shown()).not.toContain('between');
  expect(shown()).toContain('line 199');
});

test('a long output shows both ends, and opens the rest in pages that can be searched', async () => {
  show({ text: numbered(0, 5_000) });
  expect(shown()).toContain('line 0\n');
  expect(shown()).toContain('line 4999');
  expect(shown()).not.toContain('line 2000');
  await press('… 4,800 lines between');
  await vi.waitFor(() => expect(shown()).toContain('line 100\n'));
  const field = document.querySelector<HTMLInputElement>('[role=searchbox]');
  if (!field) throw new Error('there is no search');
  field.value = 'LINE 4321';
  field.dispatchEvent(new Event('input', { bubbles: true }));
  flushSync();
  field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
  await vi.waitFor(() => {
    flushSync();
    expect(document.querySelector('mark')?.textContent.trim()).toBe('line 4321');
  });
  button('Show less')?.click();
  flushSync();
  expect(shown()).toContain('lines between');
});

test('of an output that lacks its middle the whole is read from its source', async () => {
  const whole = numbered(0, 9_000);
  const page = vi.fn((offset: number) =>
    Promise.resolve({
      text: 'line 40 of the journal\n',
      offset,
      previous: 0,
      size: whole.length,
      line: 1,
      lines: 9_000,
    }),
  );
  const text = numbered(0, 10) + numbered(8_990, 9_000);
  const gap = { at: numbered(0, 10).length, bytes: 70_000, lines: 8_980 };
  show({ text, gap, source: { page, find: () => Promise.resolve({ items: [] }) } });
  expect(shown()).toContain('line 9… 8,980 lines betweenline 8990');
  await press('… 8,980 lines between');
  await vi.waitFor(() => expect(shown()).toContain('line 40 of the journal'));
  expect(page).toHaveBeenCalledWith(0);
});

test('where the rest cannot be read, the row says how much it is and is no button', () => {
  show({ text: 'end\n', gap: { at: 0, bytes: 2_048, lines: 0 } });
  const row = [...document.querySelectorAll('button')].find((one) => one.textContent.includes('left out'));
  expect(row?.disabled).toBe(true);
  expect(row?.textContent).toContain('2 KB left out here');
});

test('a search that begins while a page is read is not lost', async () => {
  let read = (): void => undefined;
  const page = () =>
    new Promise<Awaited<ReturnType<Source['page']>>>((done) => {
      read = () => done({ text: numbered(0, 200), offset: 0, previous: 0, size: 1_800, line: 1, lines: 200 });
    });
  const find = vi.fn(() => Promise.resolve({ items: [{ offset: 0, line: 43, text: 'line 42' }] }));
  show({ text: 'end\n', gap: { at: 0, bytes: 2_048, lines: 100 }, source: { page, find } });
  await press('… 100 lines between');
  const field = document.querySelector<HTMLInputElement>('[role=searchbox]');
  if (!field) throw new Error('there is no search');
  field.value = 'line 42';
  field.dispatchEvent(new Event('input', { bubbles: true }));
  flushSync();
  field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
  read();
  await vi.waitFor(() => {
    flushSync();
    expect(document.querySelector('mark')?.textContent.trim()).toBe('line 42');
  });
  expect(find).toHaveBeenCalledOnce();
});
