import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Client } from '../api/client';
import { ApiError } from '../api/errors';
import type { Found } from '../api/records';
import { client, conversations, navigation } from '../state/state';
import { hit, session } from '../test/records';
import Search from './Search.svelte';

// The screen on a fake server. The browser tests show that a hit leads to its entry.

const two: Found = {
  items: [
    hit(9, {
      session: 'b',
      title: 'The newer one',
      kind: 'user',
      excerpt: [{ text: 'a <b>' }, { text: 'word', hit: true }, { text: '</b>' }],
    }),
    hit(8, { session: 'a', title: '', archived: true }),
    hit(7, { session: 'b' }),
  ],
};

let find: ReturnType<typeof vi.fn<Client['find']>>;
let open: ReturnType<typeof vi.fn>;
let back: ReturnType<typeof vi.fn<() => void>>;
let ended: (() => void) | undefined;

beforeEach(() => {
  vi.useFakeTimers();
  find = vi.spyOn(client, 'find').mockResolvedValue(two) as unknown as typeof find;
  open = vi.spyOn(navigation, 'open').mockResolvedValue();
  back = vi.fn();
  navigation.view = { name: 'search', back: { name: 'new' } };
  show();
});

afterEach(async () => {
  await type(''); // the search outlives its screen
  ended?.();
  ended = undefined;
  conversations.sessions.clear();
  navigation.view = { name: 'new' };
  document.body.replaceChildren();
  vi.useRealTimers();
});

function show() {
  const screen = mount(Search, { target: document.body, props: { back } });
  ended = () => void unmount(screen);
  flushSync();
}

async function settle(ms = 0) {
  await vi.advanceTimersByTimeAsync(ms);
  flushSync();
}

function field(): HTMLInputElement {
  const input = document.querySelector<HTMLInputElement>('[role=combobox]');
  if (!input) throw new Error('no field');
  return input;
}

async function type(text: string) {
  field().value = text;
  field().dispatchEvent(new Event('input', { bubbles: true }));
  await settle(200);
}

async function press(key: string, init: KeyboardEventInit = {}) {
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...init });
  field().dispatchEvent(event);
  await settle();
  return event;
}

const options = () => [...document.querySelectorAll('[role=option]')];
const chosen = () => document.querySelector('[role=option][aria-selected=true]');

test('the field has the focus, and what is typed is looked for', async () => {
  expect(document.activeElement).toBe(field());
  await type('word');
  expect(find).toHaveBeenCalledTimes(1);
  expect(find.mock.calls[0]?.[0]).toMatchObject({ q: 'word' });
  const groups = [...document.querySelectorAll('[role=group]')];
  expect(groups.map((group) => group.querySelector('.title')?.textContent)).toEqual([
    'The newer one',
    'Untitled',
  ]);
  expect(groups.map((group) => group.querySelectorAll('[role=option]').length)).toEqual([2, 1]);
  expect(groups[1]?.textContent).toContain('archived');
  expect(document.querySelector('[role=status]')?.textContent).toContain('3 results');
});

test('hits are marked, and what was said stays text', async () => {
  await type('word');
  const [first] = options();
  expect(first?.querySelector('.excerpt')?.textContent).toBe('a <b>word</b>');
  expect([...(first?.querySelectorAll('mark') ?? [])].map((mark) => mark.textContent)).toEqual(['word']);
  expect(first?.querySelector('b')).toBeNull();
});

test('arrows go through the results as they stand, and Enter opens', async () => {
  await type('word');
  expect(chosen()).toBe(options()[0]);
  await press('ArrowUp');
  expect(chosen()).toBe(options()[0]);
  await press('ArrowDown');
  expect(chosen()?.textContent).toContain('entry 7');
  expect(field().getAttribute('aria-activedescendant')).toBe(chosen()?.id);
  await press('PageDown');
  expect(chosen()?.textContent).toContain('entry 8');
  await press('Enter');
  expect(open).toHaveBeenCalledWith('a', { seq: 8, look: 'found' });
  expect((await press('ArrowLeft')).defaultPrevented).toBe(false);
});

test('Enter before the answer searches at once, and opens nothing', async () => {
  await type('word');
  field().value = 'words';
  field().dispatchEvent(new Event('input', { bubbles: true }));
  await press('Enter');
  expect(open).not.toHaveBeenCalled();
  expect(find).toHaveBeenCalledTimes(2);
});

test('Escape leads back, but not out of what an input method composes', async () => {
  await press('Escape', { isComposing: true });
  expect(back).not.toHaveBeenCalled();
  await press('Escape');
  expect(back).toHaveBeenCalledTimes(1);
});

test('the last result leads on to more', async () => {
  find.mockResolvedValueOnce({ ...two, next: '7' });
  await type('word');
  expect(document.querySelector('[role=status]')?.textContent).toContain('More than 3 results');
  await press('PageDown');
  await press('ArrowDown');
  expect(find.mock.calls[1]?.[0]).toMatchObject({ before: '7' });
});

test('query, results and choice are there again', async () => {
  await type('word');
  await press('ArrowDown');
  ended?.();
  show();
  await settle();
  expect(field().value).toBe('word');
  expect(chosen()?.textContent).toContain('entry 7');
  expect([field().selectionStart, field().selectionEnd]).toEqual([0, 4]);
});

test('what is not searchable yet is said', async () => {
  find.mockResolvedValue({ items: [], pending: 1 });
  await type('word');
  expect(document.querySelector('[role=status]')?.textContent).toMatch(/Nothing found.*1 entry is not/s);
});

test('nothing to look for is a hint, a failure is one', async () => {
  find.mockRejectedValueOnce(new ApiError('search.empty', {}, 400));
  await type('!?');
  expect(document.querySelector('[role=alert]')).toBeNull();
  expect(document.body.textContent).toContain('Nothing to search for');
  find.mockRejectedValueOnce(new ApiError('network'));
  await type('word');
  const alert = document.querySelector('[role=alert]');
  expect(alert?.textContent).toContain('The search failed');
  alert?.querySelector('button')?.click();
  await settle();
  expect(options()).toHaveLength(3);
});

test('filters offer whoever said something, and their directories', async () => {
  conversations.sessions.set('s1', session({ agent: 'ada', agentName: 'Ada' }));
  await settle();
  const picker = document.querySelector<HTMLButtonElement>('button[title=Agent]');
  picker?.click();
  await settle();
  const offered = options().map((one) => one.textContent?.trim());
  expect(offered[0]).toBe('All agents');
  expect(offered).toContain('Ada');
  const ada = options().find((one) => one.textContent?.includes('Ada'));
  ada?.dispatchEvent(new MouseEvent('click', { bubbles: true }));
  await type('word');
  expect(find.mock.calls.at(-1)?.[0]).toMatchObject({ agent: 'ada' });
  const clear = [...document.querySelectorAll('button')].find(
    (one) => one.textContent === 'Clear the filters',
  );
  clear?.click();
  await settle(200);
  expect(find.mock.calls.at(-1)?.[0]).toMatchObject({ agent: '' });
});
