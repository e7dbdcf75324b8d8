import { flushSync, mount, unmount } from 'svelte';
import { expect, test } from 'vitest';
import { conversations } from '../state/state';
import Status from './Status.svelte';

test('the status says so while nothing can be written', async () => {
  const component = mount(Status, { target: document.body });
  conversations.stalls.set('s1', 'disk is full');
  flushSync();
  await import('./Stalled.svelte'); // loaded on demand
  await new Promise((done) => setImmediate(done));
  flushSync();
  const bar = document.querySelector('[aria-label=Status]');
  expect(bar?.textContent).toContain('Nothing can be saved: disk is full.');
  conversations.stalls.clear();
  flushSync();
  expect(bar?.textContent).not.toContain('disk');
  void unmount(component);
});
