import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test } from 'vitest';
import type { DiscordState } from '../api/records';
import { machine, navigation } from '../state/state';
import Status from './Status.svelte';

let ended: (() => void) | undefined;

afterEach(() => {
  ended?.();
  machine.discord = undefined;
});

/** Returns the status for a state of Discord. */
async function bar(part: Partial<DiscordState>): Promise<HTMLElement> {
  ended?.();
  machine.discord = {
    enabled: true,
    status: 'connected',
    since: '2026-11-21T14:00:00.000Z',
    hasToken: true,
    users: [],
    bindings: [],
    ignored: { strangers: 0, bots: 0, direct: 0, unbound: 0 },
    ...part,
  };
  const component = mount(Status, { target: document.body });
  ended = () => {
    ended = undefined;
    void unmount(component);
  };
  flushSync();
  await import('./Discord.svelte'); // loaded on demand
  await new Promise((done) => setImmediate(done));
  flushSync();
  const found = document.querySelector<HTMLElement>('[aria-label=Status]');
  if (!found) throw new Error('no status');
  return found;
}

test('the status tells of Discord while it is wanted and does not work, and leads to why', async () => {
  expect((await bar({})).textContent).not.toContain('Discord');
  expect((await bar({ enabled: false, status: 'off' })).textContent).not.toContain('Discord');
  expect((await bar({ status: 'reconnecting' })).textContent).toContain('Discord: Reconnecting…');
  const refused = await bar({ status: 'refused', reason: 'discord.token_invalid' });
  const button = [...refused.querySelectorAll('button')].find((one) =>
    one.textContent.includes('Discord: Refused'),
  );
  expect(button?.title).toContain('Discord refuses the token');
  const about = document.getElementById(button?.getAttribute('aria-describedby') ?? '');
  expect(about?.textContent).toContain('Discord refuses the token');
  navigation.show({ name: 'new' });
  button?.click();
  expect(navigation.view).toEqual({ name: 'settings', at: 'discord' });
  navigation.show({ name: 'new' });
});
