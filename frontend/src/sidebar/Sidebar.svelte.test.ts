import { flushSync, mount, tick, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import { comparisons, conversations, lifecycle, navigation } from '../state/state';
import { session } from '../test/records';
import Sidebar from './Sidebar.svelte';

afterEach(() => {
  vi.restoreAllMocks();
  conversations.sessions.clear();
  conversations.older = undefined;
  document.body.replaceChildren();
});

/** Creates so many sessions, the newest first. */
function fill(count: number) {
  for (let n = 0; n < count; n++) {
    const updatedAt = new Date(Date.UTC(2026, 0, 1) - n * 60_000).toISOString();
    conversations.sessions.set(`s${n}`, session({ id: `s${n}`, updatedAt }));
  }
}

/** jsdom lays nothing out. */
function listOf(height: number) {
  const list = document.querySelector<HTMLElement>('.scroller');
  if (!list) throw new Error('no list');
  Object.defineProperty(list, 'clientHeight', { value: height });
  return list;
}

function show() {
  const bar = mount(Sidebar, {
    target: document.body,
    props: { chosen: () => undefined, search: () => undefined, menu: () => undefined },
  });
  flushSync();
  return bar;
}

test('the row that is pointed at has its buttons, and no other', () => {
  conversations.sessions.set('s1', session());
  conversations.sessions.set('s2', session({ id: 's2' }));
  const bar = show();
  const rows = [...document.querySelectorAll('.session')];
  const buttons = () => rows.map((row) => row.querySelectorAll('button').length);
  const point = (kind: string, row: number) => {
    rows[row]?.dispatchEvent(new Event(kind));
    flushSync();
  };
  expect(buttons()).toEqual([0, 0]);
  point('pointerenter', 0);
  expect(buttons()).toEqual([2, 0]);
  point('pointerleave', 0);
  point('pointerenter', 1);
  expect(buttons()).toEqual([0, 2]);
  point('pointerleave', 1);
  expect(buttons()).toEqual([0, 0]);
  void unmount(bar);
});

test('keys on a button below the rows are that button’s', () => {
  conversations.sessions.set('s1', session());
  conversations.older = 'there are more';
  const archive = vi.spyOn(lifecycle, 'archive').mockResolvedValue(undefined as never);
  const opened = vi.spyOn(navigation, 'open').mockResolvedValue();
  const bar = show();
  const older = [...document.querySelectorAll('button')].find((one) => one.textContent.includes('older'));
  const press = (key: string) => {
    const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true });
    older?.dispatchEvent(event);
    return event.defaultPrevented;
  };
  expect(older).toBeDefined();
  expect([press('Delete'), press('Enter'), press(' ')]).toEqual([false, false, false]);
  expect(archive).not.toHaveBeenCalled();
  expect(opened).not.toHaveBeenCalled();
  void unmount(bar);
});

test('what is opened elsewhere is shown in the list, once', async () => {
  fill(100);
  const bar = show();
  const list = listOf(280);
  navigation.view = { name: 'session', id: 's90' };
  flushSync();
  await tick();
  expect(list.scrollTop).toBe((1 + 91) * 28 - 280); // the head of its directory, and the rows up to it
  list.scrollTop = 0; // the person scrolls elsewhere
  conversations.sessions.set('s1', session({ id: 's1', title: 'Another title' }));
  flushSync();
  await tick();
  expect(list.scrollTop).toBe(0);
  navigation.view = { name: 'new' };
  void unmount(bar);
});

test('keys lead to rows that are not in the page yet, and the focus goes there', async () => {
  fill(400);
  const bar = show();
  const list = listOf(280);
  const focused = () => (document.activeElement as HTMLElement).dataset['key'];
  const press = async (key: string, there: string) => {
    document.activeElement?.dispatchEvent(
      new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }),
    );
    await vi.waitFor(() => expect(focused()).toBe(there));
  };
  list.querySelector<HTMLElement>('[data-key]')?.focus();
  await press('End', 's399');
  expect(list.scrollTop).toBe(401 * 28 - 280);
  await press('ArrowLeft', 'group:w1');
  await press('End', 's399');
  await press('Home', 'group:w1');
  expect(list.scrollTop).toBe(0);
  await press('ArrowDown', 's0');

  // The wheel scrolls away from it.
  expect(list.tabIndex).toBe(-1);
  list.scrollTop = 8_000;
  list.dispatchEvent(new Event('scroll'));
  await vi.waitFor(() => expect(document.activeElement).toBe(list));
  expect(list.querySelector('[data-key=s0]')).toBeNull();
  expect(list.tabIndex).toBe(0);
  await press('ArrowDown', 's1');
  expect(list.tabIndex).toBe(-1);
  void unmount(bar);
});

test('rows that are higher with larger text are gone by as they are', async () => {
  vi.spyOn(Element.prototype, 'getBoundingClientRect').mockReturnValue({ height: 32.2 } as DOMRect);
  fill(400);
  const bar = show();
  const list = listOf(280);
  navigation.view = { name: 'session', id: 's90' };
  flushSync();
  await tick();
  expect(list.scrollTop).toBeCloseTo((1 + 91) * 32.2 - 280);
  flushSync();
  const [first] = list.querySelectorAll<HTMLElement>('[role=presentation]');
  const from = Math.floor(list.scrollTop / 32.2) - 20;
  expect(parseFloat(first?.style.height ?? '')).toBeCloseTo(from * 32.2);
  navigation.view = { name: 'new' };
  void unmount(bar);
});

test('a new title that could not be stored is in its field again', async () => {
  conversations.sessions.set('s1', session({ title: 'Old' }));
  const patch = vi.spyOn(conversations, 'patch').mockResolvedValue(false);
  const bar = show();
  document.querySelector('.session')?.dispatchEvent(new MouseEvent('dblclick', { bubbles: true }));
  await tick();
  flushSync();
  const field = () => document.querySelector<HTMLInputElement>('input.rename');
  const name = async (title: string) => {
    const input = field();
    if (!input) throw new Error('no field');
    input.value = title;
    input.dispatchEvent(new InputEvent('input', { bubbles: true }));
    input.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
    for (let n = 0; n < 5; n++) await tick();
    flushSync();
  };
  await name('New');
  expect(patch).toHaveBeenCalledWith('s1', { title: 'New' });
  expect(field()?.value).toBe('New');
  expect(document.activeElement).toBe(field());
  patch.mockResolvedValue(true);
  await name('Newer');
  expect(field()).toBeNull();
  void unmount(bar);
});

test('a session that works has a line with what it does, which the keys pass over', async () => {
  const turn = { id: 't1' } as never;
  conversations.sessions.set(
    's0',
    session({
      id: 's0',
      title: 'Fix login',
      updatedAt: '2026-01-02T00:00:00Z',
      phase: 'working',
      turn,
      doing: 'go test\n./...',
    }),
  );
  conversations.sessions.set('s1', session({ id: 's1', updatedAt: '2026-01-01T00:00:00Z' }));
  const bar = show();
  const list = listOf(600);
  const rows = () =>
    [...document.querySelectorAll('.scroller .row')].map((row) =>
      row.textContent.trim().replaceAll(/\s+/g, ' '),
    );
  expect(rows().slice(2)).toEqual(['go test ./...', expect.stringContaining('Fix login')]);
  const keyed = (key: string) => list.querySelector<HTMLElement>(`[data-key="${key}"]`);
  expect(keyed('s0')?.title.split('\n').slice(0, 2)).toEqual(['Fix login', 'running: go test ./...']);
  keyed('s0')?.focus();
  const press = async (key: string, focused: string) => {
    document.activeElement?.dispatchEvent(
      new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }),
    );
    await vi.waitFor(() => {
      flushSync();
      expect((document.activeElement as HTMLElement).dataset['key']).toBe(focused);
    });
  };
  await press('ArrowDown', 's1');
  await press('ArrowUp', 's0');
  await press('End', 's1');
  void unmount(bar);
});

test('the members of a comparison are one row, which keys open and close, and which stays as the person left it', async () => {
  const members = ['s1', 's2'].map((id, n) => ({
    session: id,
    agent: 'mock',
    name: `Demo agent ${n + 1}`,
    begun: true,
  }));
  const comparison = {
    id: 'c1',
    title: 'Fix login',
    cwd: '/home/ada/app',
    repository: '/home/ada/app',
    commit: 'abc',
    createdAt: '2026-11-21T14:00:00.000Z',
    members,
  };
  for (const { session: id } of members) conversations.sessions.set(id, session({ id }));
  comparisons.put(comparison);
  navigation.view = { name: 'new' };
  const bar = show();
  const keys = () =>
    [...document.querySelectorAll<HTMLElement>('[role=treeitem]')].map((one) => one.dataset['key']);
  const names = () => [...document.querySelectorAll('[aria-level="3"]')].map((one) => one.textContent.trim());
  const closed = ['group:w1', 'compare:c1'];
  const open = [...closed, 's1', 's2'];
  await vi.waitFor(() => expect(keys()).toEqual(closed));
  const press = async (key: string, there: string) => {
    document.activeElement?.dispatchEvent(
      new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }),
    );
    flushSync();
    await vi.waitFor(() => expect((document.activeElement as HTMLElement).dataset['key']).toBe(there));
  };
  document.querySelector<HTMLElement>('[data-key="compare:c1"]')?.focus();
  await press('ArrowRight', 'compare:c1');
  expect(keys()).toEqual(open);
  expect(names()).toEqual(['Demo agent 1', 'Demo agent 2']);
  await press('ArrowRight', 's1');
  await press('ArrowLeft', 'compare:c1');
  await press('ArrowLeft', 'compare:c1');
  expect(keys()).toEqual(closed);
  await press('ArrowLeft', 'group:w1');

  // A member that is opened from elsewhere is listed, once.
  navigation.view = { name: 'session', id: 's2' };
  flushSync();
  expect(keys()).toEqual(open);
  document.querySelector<HTMLElement>('.fold')?.click();
  flushSync();
  comparisons.put({ ...comparison, title: 'Another' });
  flushSync();
  expect(keys()).toEqual(closed);

  document.querySelector<HTMLElement>('[data-key="compare:c1"]')?.click();
  flushSync();
  expect(navigation.view).toEqual({ name: 'compare', id: 'c1' });
  conversations.sessions.delete('s2'); // archived
  flushSync();
  expect(keys()).toEqual(['group:w1', 's1']);
  navigation.view = { name: 'new' };
  comparisons.byId.clear();
  void unmount(bar);
});
