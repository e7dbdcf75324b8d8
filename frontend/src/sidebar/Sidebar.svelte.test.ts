import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import { app } from '../app.svelte';
import { session } from '../test/records';
import Sidebar from './Sidebar.svelte';

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  app.sessions.clear();
  app.older = undefined;
  document.body.replaceChildren();
});

test('keys on a button below the rows are that button’s', () => {
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe = () => undefined;
      unobserve = () => undefined;
      disconnect = () => undefined;
    },
  );
  app.sessions.set('s1', session());
  app.older = 'there are more';
  const archive = vi.spyOn(app, 'archive').mockResolvedValue(undefined as never);
  const opened = vi.spyOn(app, 'open').mockResolvedValue();
  const bar = mount(Sidebar, {
    target: document.body,
    props: { chosen: () => undefined, search: () => undefined, menu: () => undefined },
  });
  flushSync();
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
