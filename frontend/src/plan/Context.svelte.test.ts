import { flushSync, mount, unmount } from 'svelte';
import { expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import { SessionView } from '../state/session.svelte';
import { client, navigation } from '../state/state';
import { answering } from '../test/calls';
import { session } from '../test/records';
import Context from './Context.svelte';

test('the Files tab is told that what is asked for is a directory', () => {
  const refused = new ApiError('not_found', {}, 404);
  vi.spyOn(client, 'call').mockRejectedValue(refused);
  vi.spyOn(client, 'mcpServers').mockRejectedValue(refused);
  vi.spyOn(client, 'skillEntries').mockRejectedValue(refused);
  const open = vi.spyOn(navigation.panel, 'open').mockReturnValue();
  const view = new SessionView('s1', client, () => undefined);
  const tab = mount(Context, { target: document.body, props: { session: session(), view, ask: undefined } });
  flushSync();
  document.querySelector<HTMLElement>('button[aria-label^="Show its files"]')?.click();
  expect(open.mock.calls).toEqual([[{ tab: 'files', path: '/home/ada/app', directory: true }]]);
  void unmount(tab);
  document.body.replaceChildren();
});

test('what could not be asked for is said, whatever else is answered, and is not called none', async () => {
  const call = answering(client, () => ({ items: [] }));
  const servers = vi.spyOn(client, 'mcpServers').mockRejectedValue(new ApiError('not_found', {}, 404));
  vi.spyOn(client, 'skillEntries').mockResolvedValue({ items: [], path: '' });
  const view = new SessionView('s1', client, () => undefined);
  const tab = mount(Context, { target: document.body, props: { session: session(), view, ask: undefined } });
  const settle = async () => {
    await new Promise((done) => setTimeout(done, 20));
    flushSync();
  };
  const none = () => document.body.textContent?.split('This directory has none.').length ?? 0;
  flushSync();
  expect(none()).toBe(1); // none of them yet
  await settle();
  expect(call).toHaveBeenCalled();
  expect(document.querySelector('[role=alert]')).not.toBeNull();
  expect(none()).toBe(2); // the skills
  servers.mockResolvedValue({ items: [], path: '' });
  document.querySelector<HTMLElement>('[role=alert] button')?.click();
  flushSync();
  await settle();
  expect(document.querySelector('[role=alert]')).toBeNull();
  expect(none()).toBe(3);
  void unmount(tab);
  document.body.replaceChildren();
});
