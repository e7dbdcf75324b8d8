import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import { SessionView } from '../state/session.svelte';
import { client } from '../state/state';
import { answering } from '../test/calls';
import { session } from '../test/records';
import Inspector from './Inspector.svelte';

afterEach(() => {
  vi.restoreAllMocks();
  document.body.replaceChildren();
});

test('who asks for the error output of an agent finds it open', () => {
  answering(client, () => new Promise(() => undefined));
  const inspector = mount(Inspector, {
    target: document.body,
    props: {
      session: session(),
      view: new SessionView('s1', client, () => undefined),
      ask: { tab: 'inspector', stderr: true },
    },
  });
  flushSync();
  expect([...document.querySelectorAll('[aria-expanded=true]')].map((one) => one.textContent.trim())).toEqual(
    ['Error output'],
  );
  void unmount(inspector);
});
