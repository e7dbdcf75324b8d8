import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import type { QueueItem } from '../api/records';
import { queued } from '../test/records';
import Queue from './Queue.svelte';

const change = vi.fn(() => Promise.resolve());
const remove = vi.fn(() => Promise.resolve());
const leave = vi.fn();
let ended: (() => void) | undefined;

function show(items: QueueItem[], running = true) {
  const component = mount(Queue, {
    target: document.body,
    props: { items, agent: 'Mock', running, change, remove, leave },
  });
  flushSync();
  ended = () => void unmount(component);
}

afterEach(() => {
  ended?.();
  document.body.replaceChildren();
  vi.clearAllMocks();
});

function button(name: string, row = 0): HTMLButtonElement {
  const found = [...(document.querySelectorAll('li')[row]?.querySelectorAll('button') ?? [])].find(
    (one) => (one.getAttribute('aria-label') ?? one.textContent).trim() === name,
  );
  if (!found) throw new Error(`no button ${name} in row ${row}`);
  return found;
}

function press(at: Element, key: string, init: KeyboardEventInit = {}) {
  at.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...init }));
}

test('a row that is held says why, and offers to send it', () => {
  show([queued(0, { held: 'failed' }), queued(1)], false);
  expect(document.querySelector('li')?.textContent).toContain('Held: the turn failed');
  button('Send').click();
  expect(change).toHaveBeenCalledWith('q0', { held: false });
  expect(() => button('Send', 1)).toThrow();
  expect(() => button('Interrupt and send this')).toThrow(); // nothing runs
});

test('a row may go before everything while a turn runs', () => {
  show([queued(0)]);
  button('Interrupt and send this').click();
  expect(change).toHaveBeenCalledWith('q0', { send: true });
});

test('rows are moved and left by keyboard', () => {
  show([queued(0), queued(1), queued(2)]);
  const rows = [...document.querySelectorAll<HTMLElement>('[data-part=text]')];
  rows[0]?.focus();
  press(rows[0] as Element, 'ArrowDown');
  expect(document.activeElement).toBe(rows[1]);
  press(rows[1] as Element, 'ArrowDown', { altKey: true });
  expect(change).toHaveBeenCalledWith('q1', { position: 2 });
  press(rows[2] as Element, 'ArrowDown', { altKey: true }); // there is no further down
  expect(change).toHaveBeenCalledTimes(1);
  press(rows[1] as Element, 'Delete');
  expect(remove).toHaveBeenCalledWith('q1');
});

test('what is edited is held, and goes on as it was', async () => {
  show([queued(0)]);
  button('Edit').click();
  await vi.waitFor(() => expect(change).toHaveBeenCalledWith('q0', { held: true }));
  const field = document.querySelector('textarea') as HTMLTextAreaElement;
  expect(field.value).toBe('prompt 0');
  field.value = 'better';
  field.dispatchEvent(new Event('input', { bubbles: true }));
  press(field, 'Enter');
  expect(change).toHaveBeenLastCalledWith('q0', { message: 'better', held: false });
});

test('what is edited while nothing runs is not sent by that', async () => {
  show([queued(0, { held: 'stopped' })], false);
  button('Edit').click();
  flushSync();
  const field = document.querySelector('textarea') as HTMLTextAreaElement;
  press(field, 'Enter');
  expect(change).toHaveBeenCalledExactlyOnceWith('q0', { message: 'prompt 0' });
});

test('where the last row is gone the composer has the focus', async () => {
  show([queued(0)]);
  button('Delete').click();
  await vi.waitFor(() => expect(leave).toHaveBeenCalled());
});
