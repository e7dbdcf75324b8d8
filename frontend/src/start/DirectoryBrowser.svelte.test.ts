import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import type { Directory } from '../api/records';
import DirectoryBrowser from './DirectoryBrowser.svelte';

let ended: (() => void) | undefined;
let asked: { of: string; done: (found: Directory) => void; fail: (error: Error) => void }[];
let choose: ReturnType<typeof vi.fn<(path: string) => void>>;

beforeEach(() => {
  asked = [];
  choose = vi.fn<(path: string) => void>();
  const list = (of: string) => new Promise<Directory>((done, fail) => asked.push({ of, done, fail }));
  const screen = mount(DirectoryBrowser, {
    target: document.body,
    props: { start: '/a', root: '/', list, choose, close: () => undefined },
  });
  ended = () => void unmount(screen);
  flushSync();
});

afterEach(() => {
  ended?.();
  document.body.replaceChildren();
});

const field = () => document.querySelector<HTMLInputElement>('[role=combobox]');
const options = () => [...document.querySelectorAll('[role=option]')].map((one) => one.textContent.trim());
const directory = (path: string, ...names: string[]) =>
  ({ path, items: names.map((name) => ({ name, path: `${path}/${name}` })) }) as unknown as Directory;

async function answer(found: Directory | Error) {
  const last = asked.at(-1);
  if (found instanceof Error) last?.fail(found);
  else last?.done(found);
  await Promise.resolve();
  await Promise.resolve();
  flushSync();
}

function type(text: string) {
  const input = field();
  if (!input) throw new Error('no field');
  input.value = text;
  input.dispatchEvent(new Event('input', { bubbles: true }));
  flushSync();
}

const press = (key: string) =>
  field()?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));

test('what is typed is chosen, also before it is known what stands there', async () => {
  await answer(directory('/a', 'one', 'two'));
  expect(options()).toEqual(['one', 'two']);
  type('/b/');
  expect(asked.map(({ of }) => of)).toEqual(['/a', '/b']);
  expect(options()).toEqual([]); // the names in /a do not belong to /b
  press('Enter');
  expect(choose).toHaveBeenCalledWith('/b');
});

test('a directory that could not be read is asked for again', async () => {
  await answer(new ApiError('place.unreachable', { name: 'x' }));
  const again = [...document.querySelectorAll('button')].find((one) => one.textContent.includes('again'));
  again?.click();
  flushSync();
  expect(asked).toHaveLength(2);
  await answer(directory('/a', 'one'));
  expect(options()).toEqual(['one']);
});
