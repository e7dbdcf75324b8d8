import { flushSync, mount, tick, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import { app } from '../app.svelte';
import { session } from '../test/records';
import Sidebar from './Sidebar.svelte';

afterEach(() => {
  vi.restoreAllMocks();
  app.sessions.clear();
  app.older = undefined;
  document.body.replaceChildren();
});

function show() {
  const bar = mount(Sidebar, {
    target: document.body,
    props: { chosen: () => undefined, search: () => undefined, menu: () => undefined },
  });
  flushSync();
  return bar;
}

test('the row that is pointed at has its buttons, and no other', () => {
  app.sessions.set('s1', session());
  app.sessions.set('s2', session({ id: 's2' }));
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
  app.sessions.set('s1', session());
  app.older = 'there are more';
  const archive = vi.spyOn(app, 'archive').mockResolvedValue(undefined as never);
  const opened = vi.spyOn(app, 'open').mockResolvedValue();
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
  for (let n = 0; n < 100; n++) {
    const updatedAt = new Date(Date.UTC(2026, 0, 1) - n * 60_000).toISOString();
    app.sessions.set(`s${n}`, session({ id: `s${n}`, updatedAt }));
  }
  const bar = show();
  const list = document.querySelector('.scroller');
  if (!list) throw new Error('no list');
  Object.defineProperty(list, 'clientHeight', { value: 280 });
  app.view = { name: 'session', id: 's90' };
  flushSync();
  await tick();
  expect(list.scrollTop).toBe((1 + 91) * 28 - 280); // the head of its directory, and the rows up to it
  list.scrollTop = 0; // the person goes elsewhere
  app.sessions.set('s1', session({ id: 's1', title: 'Another title' }));
  flushSync();
  await tick();
  expect(list.scrollTop).toBe(0);
  app.view = { name: 'new' };
  void unmount(bar);
});
