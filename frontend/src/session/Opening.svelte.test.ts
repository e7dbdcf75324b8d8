import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { StorageState } from '../api/records';
import { machine } from '../state/state';
import Opening from './Opening.svelte';

let ended: (() => void) | undefined;

function show() {
  const component = mount(Opening, { target: document.body });
  flushSync();
  ended = () => void unmount(component);
}

async function pass(ms: number) {
  await vi.advanceTimersByTimeAsync(ms);
  flushSync();
}

const text = () => document.body.textContent?.replace(/\s+/g, ' ').trim();

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  ended?.();
  machine.storage = undefined;
  vi.useRealTimers();
  document.body.replaceChildren();
});

test('a conversation that opens at once says nothing of it', async () => {
  show();
  await pass(300);
  expect(text()).toBe('');
});

test('one that takes longer says so, and why where an update is the reason', async () => {
  show();
  await pass(400);
  expect(text()).toBe('Opening the conversation…');
  machine.storage = { rebuilding: { done: 0, total: 1 } } as StorageState;
  flushSync();
  expect(text()).toContain('once after an update');
});
