import { flushSync, mount, tick, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import App from './App.svelte';
import { act } from './commands/actions';
import { commands, loadActions } from './commands/commands.svelte';
import { conversationPart } from './conversation.svelte';
import { client, connection, conversations, navigation, toasts } from './state/state';
import { entry, session, turn } from './test/records';
import { answering } from './test/calls';

// The frame around a conversation whose agent works: what keys do to what lies over it, and where the focus goes.

const id = 'framed'; // the store keeps its session after this file
let width: number;
let ended: (() => void) | undefined;

beforeEach(async () => {
  localStorage.clear();
  vi.stubGlobal('matchMedia', (query: string) => ({
    matches: width <= Number(/max-width: (\d+)px/.exec(query)?.[1] ?? 0),
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
  }));
  vi.spyOn(connection, 'start').mockResolvedValue();
  vi.spyOn(connection, 'close').mockReturnValue();
  vi.spyOn(client, 'entries').mockResolvedValue({
    items: [entry(1, { session: id, kind: 'thought', text: 'Hm' })],
    turns: [],
    requests: [],
  });
  vi.spyOn(client, 'queue').mockResolvedValue([]);
  // The keyboard map outlives this file, because test files share a page.
  const keys = { path: '', version: '', bindings: [] };
  answering(client, (_, address) => (address === '/client/keyboard' ? keys : { items: [] }));
  vi.spyOn(client, 'mcpServers').mockResolvedValue({ path: '', items: [] });
  vi.spyOn(client, 'skillEntries').mockResolvedValue({ path: '', items: [] });
  conversations.sessions.set(id, session({ id, turn: turn({ session: id, state: 'running' }) }));
  navigation.show({ name: 'session', id });
  connection.loaded = true;
  await Promise.all([loadActions(), conversationPart.load()]); // as after the start of the page
});

afterEach(() => {
  ended?.();
  ended = undefined;
  navigation.panel.close();
  navigation.panes.drop(id);
  conversations.sessions.clear();
  navigation.view = { name: 'new' };
  connection.loaded = navigation.narrow = false;
  navigation.mention = commands.frame = undefined;
  toasts.list = [];
  document.body.replaceChildren();
  localStorage.clear();
  vi.unstubAllGlobals();
});

function open(at: number) {
  width = at;
  const page = mount(App, { target: document.body });
  ended = () => void unmount(page);
  flushSync();
}

const part = (selector: string) => document.querySelector<HTMLElement>(selector);
const message = () => part('.composer textarea');
const frame = () => {
  if (!commands.frame) throw new Error('no frame');
  return commands.frame;
};

async function settle() {
  await tick();
  flushSync();
}

async function escape() {
  const event = new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, cancelable: true });
  (document.activeElement ?? document.body).dispatchEvent(event);
  await settle();
  return event.defaultPrevented;
}

const armed = () => document.body.textContent.includes('Press Esc again to stop');

/** The Files tab with its field. */
async function files() {
  act('files', frame(), false);
  // The panel's part of the page is loaded first, however long that takes.
  await vi.waitFor(() => expect(part('aside.panel input')).not.toBeNull(), 20_000);
}

test('Escape closes the drawer before it is a wish to stop, wherever the focus is', async () => {
  open(700);
  for (const from of [message, () => part('.drawer .item')]) {
    act('sidebar', frame(), false);
    flushSync();
    from()?.focus();
    expect(part('.drawer')).not.toBeNull();
    expect(await escape()).toBe(true);
    expect(part('.drawer')).toBeNull();
    expect(document.activeElement).toBe(message());
    expect(armed()).toBe(false);
  }
  await escape();
  expect(armed()).toBe(true);
});

test.each([
  ['over it, before it is a wish to stop', 1_000, false],
  ['but not beside it', 1_400, true],
])('Escape in the message closes a panel that lies %s', async (_, at, stays) => {
  open(at);
  await files();
  message()?.focus();
  await escape();
  expect(part('aside.panel') !== null).toBe(stays);
  expect(armed()).toBe(stays);
});

test('what is hidden by keys gives the focus back', async () => {
  open(1_400);
  part('.side .item')?.focus();
  act('sidebar', frame(), false);
  flushSync();
  expect(part('.side')).toBeNull();
  expect(document.activeElement).toBe(message());

  await files();
  part('aside.panel input')?.focus();
  act('plan', frame(), false); // the field is removed, and the panel stays
  await settle();
  expect(document.activeElement).toBe(part('aside.panel'));
  act('panel', frame(), false);
  await settle();
  expect(part('aside.panel')).toBeNull();
  expect(document.activeElement).toBe(message());
});

test('the part that shows conversations is mounted when it comes; one that cannot be loaded says so, and is asked for again', async () => {
  const loaded = conversationPart.component;
  conversationPart.component = undefined;
  conversationPart.failed = true;
  open(1_200);
  expect(part('.side .item')).not.toBeNull();
  expect(message()).toBeNull();
  const again = vi.spyOn(conversationPart, 'load').mockImplementation(async () => {
    conversationPart.component = loaded;
  });
  part('main .wait[role=alert] button')?.click();
  flushSync();
  expect(again).toHaveBeenCalledOnce();
  expect(part('main .wait[role=alert]')).toBeNull();
  expect(message()).not.toBeNull();
});

test('a screen for a new conversation that cannot be loaded says so, and is asked for again', async () => {
  vi.doMock('./start/Start.svelte', () => {
    throw new Error('gone');
  });
  navigation.view = { name: 'new' };
  open(1_200);
  await vi.waitFor(() => expect(document.querySelector('main .wait[role=alert] button')).not.toBeNull());
  vi.doUnmock('./start/Start.svelte');
  document.querySelector<HTMLElement>('main .wait[role=alert] button')?.click();
  flushSync();
  await vi.waitFor(() => expect(document.querySelector('main h1')).not.toBeNull(), 20_000);
  expect(document.querySelector('main .wait[role=alert]')).toBeNull();
});
