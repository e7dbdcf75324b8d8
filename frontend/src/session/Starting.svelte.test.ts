import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Session } from '../api/records';
import { session } from '../test/records';
import Starting from './Starting.svelte';

const start = Date.parse('2026-11-21T14:00:00.000Z');
let ended: (() => void) | undefined;

function show(part: Partial<Session>) {
  const component = mount(Starting, {
    target: document.body,
    props: { session: session({ phase: 'starting', agentName: 'Ada', ...part }) },
  });
  flushSync();
  ended = () => void unmount(component);
}

async function pass(ms: number) {
  await vi.advanceTimersByTimeAsync(ms);
  flushSync();
}

const text = () => document.body.textContent?.replace(/\s+/g, ' ').trim();

beforeEach(() => vi.useFakeTimers({ now: start, toFake: ['setInterval', 'clearInterval', 'Date'] }));
afterEach(() => {
  ended?.();
  vi.useRealTimers();
  document.body.replaceChildren();
});

test('a start of less than three seconds says no more than that it starts', async () => {
  show({ step: 'spawn' });
  await pass(2_000);
  expect(text()).toBe('Starting Ada');
});

test('then it says at which step it is, and for how long', async () => {
  show({ step: 'session', stepSince: new Date(start).toISOString() });
  await pass(3_000);
  expect(document.querySelector('[aria-current=step]')?.textContent).toContain('session');
  expect(text()).toContain('3 s');
  await pass(16_000);
  expect(text()).toContain('19 s');
  await pass(60_000);
  expect(text()).toContain('1 m 19 s');
});

test('a window that is opened in the middle of a start says so at once', () => {
  show({ step: 'initialize', stepSince: new Date(start - 12_000).toISOString() });
  expect(text()).toContain('12 s');
});

test('without a time, or with one that is still to come, seconds count from here', async () => {
  show({ step: 'initialize', stepSince: new Date(start + 60_000).toISOString() });
  await pass(4_000);
  expect(text()).toContain('4 s');
});
