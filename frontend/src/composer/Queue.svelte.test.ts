import { flushSync, mount, tick, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import type { QueueItem } from '../api/records';
import { toasts } from '../state/state';
import { queued } from '../test/records';
import Queue from './Queue.svelte';
import { editsOf } from '../state/queue.svelte';

const change = vi.fn((_item: string, _patch: object) => Promise.resolve(true));
const remove = vi.fn(() => Promise.resolve());
const leave = vi.fn();
/** The composer's text. */
let written = '';
const write = vi.fn((all: string, _take?: boolean) => void (written = all));
let ended: (() => void) | undefined;

function show(items: QueueItem[], running = true, loaded = true) {
  const props = $state({
    items: items as readonly QueueItem[],
    edits: editsOf('s1'),
    loaded,
    agent: 'Mock',
    running,
    change,
    remove,
    field: () => ({ read: () => written, write }),
    leave,
  });
  const component = mount(Queue, { target: document.body, props });
  flushSync();
  ended = () => void unmount(component);
  return props;
}

afterEach(() => {
  ended?.();
  document.body.replaceChildren();
  editsOf('s1').clear();
  written = '';
  vi.clearAllMocks();
  change.mockReset().mockResolvedValue(true);
  toasts.list = [];
});

const fields = () => [...document.querySelectorAll('textarea')];

function type(text: string) {
  const [field] = fields();
  if (!field) throw new Error('no editor');
  field.value = text;
  field.dispatchEvent(new Event('input', { bubbles: true }));
  flushSync();
  return field;
}

/** Opens the editor of the first row and types a text. */
async function editing(text: string, items = [queued(0)]) {
  const props = show(items);
  button('Edit').click();
  await vi.waitFor(() => expect(change).toHaveBeenCalled());
  type(text);
  return props;
}

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
  expect(() => button('Interrupt and send this')).toThrow(); // no turn runs
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
  press(rows[2] as Element, 'ArrowDown', { altKey: true }); // the last row cannot move down
  expect(change).toHaveBeenCalledTimes(1);
  press(rows[1] as Element, 'Delete');
  expect(remove).toHaveBeenCalledWith('q1');
});

test('what is edited is held, and goes on as it was', async () => {
  show([queued(0)]);
  button('Edit').click();
  await vi.waitFor(() => expect(change).toHaveBeenCalledWith('q0', { held: true }));
  expect(fields()[0]?.value).toBe('prompt 0');
  press(type('better'), 'Enter');
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

test('an edit that is refused stays open, and says so', async () => {
  await editing('better');
  change.mockResolvedValueOnce(false);
  press(fields()[0] as Element, 'Enter');
  press(fields()[0] as Element, 'Enter'); // the save is under way already
  expect(change).toHaveBeenCalledTimes(2);
  await vi.waitFor(() => expect(document.querySelector('[role=alert]')?.textContent).toContain('Not saved'));
  expect(fields().map((one) => [one.value, one.readOnly])).toEqual([['better', false]]);
  press(fields()[0] as Element, 'Enter');
  await vi.waitFor(() => expect(fields()).toEqual([]));
  expect(change).toHaveBeenLastCalledWith('q0', { message: 'better', held: false });
  expect(document.activeElement?.getAttribute('data-part')).toBe('text');
});

test('edits that are not finished are there again when one comes back, each in its row', async () => {
  await editing('better', [queued(0), queued(1)]);
  button('Edit', 1).click();
  flushSync();
  expect(fields().map((one) => one.value)).toEqual(['better', 'prompt 1']);
  ended?.();
  show([queued(1, { held: 'person' }), queued(0, { held: 'person' })]);
  expect(fields().map((one) => one.value)).toEqual(['prompt 1', 'better']);
  press(fields()[1] as Element, 'Enter');
  expect(change).toHaveBeenLastCalledWith('q0', { message: 'better', held: false });
  press(fields()[0] as Element, 'Escape');
  await vi.waitFor(() => expect(fields()).toEqual([]));
  expect(editsOf('s1').size).toBe(0);
});

test('what was written in a row that has gone goes into the composer, before what stands there', async () => {
  const props = await editing('better', [queued(0), queued(1)]);
  props.items = [queued(1)];
  flushSync();
  expect(write).toHaveBeenCalledExactlyOnceWith('better', true);
  expect(toasts.list.at(-1)?.text).toContain('is in the composer');
  expect([fields().length, editsOf('s1').size]).toEqual([0, 0]);
  // The same where the row was sent while the queue was not shown.
  button('Edit').click();
  await vi.waitFor(() => expect(change).toHaveBeenCalledWith('q1', { held: true }));
  type('best');
  await tick();
  ended?.();
  written = 'begun';
  const back = show([], true, false);
  expect(write).toHaveBeenCalledTimes(1);
  back.loaded = true;
  flushSync();
  expect(written).toBe('best\n\nbegun');
});

test('who writes elsewhere keeps the focus when a row goes', async () => {
  const props = await editing('better');
  const other = document.body.appendChild(document.createElement('input'));
  other.focus();
  props.items = [];
  flushSync();
  expect(write).toHaveBeenCalledExactlyOnceWith('better', false);
});

test('what was not changed, or has been saved, goes nowhere with its row', async () => {
  const props = await editing('prompt 0');
  props.items = [];
  flushSync();
  expect(editsOf('s1').size).toBe(0);
  ended?.();
  // Saved, and sent before the answer.
  let answer!: (done: boolean) => void;
  const again = await editing('better');
  change.mockReturnValueOnce(new Promise((done) => (answer = done)));
  press(fields()[0] as Element, 'Enter');
  again.items = [];
  flushSync();
  answer(true);
  await vi.waitFor(() => expect(editsOf('s1').size).toBe(0));
  ended?.();
  // Saved, and only the answer was lost.
  const lost = await editing('better');
  change.mockResolvedValueOnce(false);
  press(fields()[0] as Element, 'Enter');
  lost.items = [queued(0, { message: 'better' })];
  await vi.waitFor(() => expect(document.querySelector('[role=alert]')).not.toBeNull());
  lost.items = [];
  flushSync();
  expect([write.mock.calls.length, toasts.list.length]).toEqual([0, 0]);
});

test('what was refused because its row has gone goes into the composer', async () => {
  const props = await editing('better');
  let answer!: (done: boolean) => void;
  change.mockReturnValueOnce(new Promise((done) => (answer = done)));
  press(fields()[0] as Element, 'Enter');
  props.items = [];
  flushSync();
  expect(write).not.toHaveBeenCalled();
  answer(false);
  await vi.waitFor(() => expect(written).toBe('better'));
});

test('an edit that is begun anew stays, whatever becomes of the one before', async () => {
  await editing('better');
  let answer!: (done: boolean) => void;
  change.mockReturnValueOnce(new Promise((done) => (answer = done)));
  press(fields()[0] as Element, 'Escape');
  flushSync();
  button('Edit').click();
  flushSync();
  type('best');
  answer(true);
  await tick();
  await tick();
  expect(fields().map((one) => one.value)).toEqual(['best']);
});

test('an edit that one key has put away can be taken back, and is held again', async () => {
  await editing('better');
  press(fields()[0] as Element, 'Escape');
  await vi.waitFor(() => expect(fields()).toEqual([]));
  expect(change).toHaveBeenLastCalledWith('q0', { held: false });
  toasts.undo();
  await vi.waitFor(() => expect(change).toHaveBeenLastCalledWith('q0', { held: true }));
  expect(fields().map((one) => one.value)).toEqual(['better']);
  expect(document.activeElement).toBe(fields()[0]);
  // Closing and reopening the editor meanwhile keeps the text.
  press(fields()[0] as Element, 'Escape');
  await vi.waitFor(() => expect(fields()).toEqual([]));
  button('Edit').click();
  await vi.waitFor(() => expect(fields()).toHaveLength(1));
  toasts.undo();
  flushSync();
  expect(fields().map((one) => one.value)).toEqual(['better']);
  // An unchanged text is not offered.
  type('prompt 0');
  await tick();
  press(fields()[0] as Element, 'Escape');
  await vi.waitFor(() => expect(fields()).toEqual([]));
  expect(toasts.list).toEqual([]);
});

test('an edit that is taken back when its row was sent meanwhile is in the composer', async () => {
  const props = await editing('better');
  press(fields()[0] as Element, 'Escape');
  await tick();
  props.items = [];
  flushSync();
  expect(write).not.toHaveBeenCalled();
  change.mockClear();
  toasts.undo();
  flushSync();
  await tick();
  expect(written).toBe('better');
  expect([change.mock.calls.length, editsOf('s1').size]).toEqual([0, 0]);
});
