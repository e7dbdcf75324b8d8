import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import type { FoundPath } from '../api/records';
import { client, navigation } from '../state/state';
import '../strings/keyboard';
import { answering } from '../test/calls';
import { session } from '../test/records';
import Palette from './Palette.svelte';

let ended: (() => void) | undefined;

afterEach(() => {
  ended?.();
  document.body.replaceChildren();
});

test('the Files tab is told which of what was found is a directory', async () => {
  const items: FoundPath[] = [
    { path: '/home/ada/app/src', relative: 'src', directory: true },
    { path: '/home/ada/app/src/main.go', relative: 'src/main.go' },
  ];
  vi.spyOn(navigation, 'current', 'get').mockReturnValue(session());
  answering(client, () => ({ items }));
  const open = vi.spyOn(navigation.panel, 'open').mockReturnValue();
  const props = { start: '@src', actions: () => [], help: [], close: () => undefined };
  const palette = mount(Palette, { target: document.body, props });
  ended = () => void unmount(palette);
  flushSync();
  const options = () => [...document.querySelectorAll<HTMLElement>('[role=option]')];
  await vi.waitFor(() => expect(options()).toHaveLength(2));
  for (const option of options()) option.click();
  await vi.waitFor(() => expect(open).toHaveBeenCalledTimes(2));
  expect(open.mock.calls.map(([ask]) => 'directory' in ask && ask.directory)).toEqual([true, undefined]);
});

test('an action runs where the browser has no room to keep that it was chosen', async () => {
  const full = vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
    throw new DOMException('full', 'QuotaExceededError');
  });
  const run = vi.fn();
  const close = vi.fn();
  const actions = () => [{ id: 'mcp', name: 'MCP servers', detail: '', keys: '', run }] as never;
  const palette = mount(Palette, {
    target: document.body,
    props: { start: '>', actions, help: [], close },
  });
  ended = () => void unmount(palette);
  flushSync();
  document
    .querySelector('input')
    ?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
  await vi.waitFor(() => expect(run).toHaveBeenCalled());
  expect(full).toHaveBeenCalled();
  expect(close).toHaveBeenCalled();
  full.mockRestore();
});
