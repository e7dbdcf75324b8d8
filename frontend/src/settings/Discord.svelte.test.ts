import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { DiscordState } from '../api/discord';
import { ApiError } from '../api/errors';
import { app } from '../app.svelte';
import { session } from '../test/records';
import Discord from './Discord.svelte';

// The section of the settings over a server that is played here: what it asks for, and what it shows.

const at = '2026-11-21T14:00:00.000Z';
const fresh: DiscordState = {
  enabled: false,
  status: 'off',
  since: at,
  hasToken: false,
  users: [],
  bindings: [],
  ignored: { strangers: 0, bots: 0, direct: 0, unbound: 0 },
};
const set: DiscordState = {
  ...fresh,
  enabled: true,
  status: 'connected',
  hasToken: true,
  tokenIn: 'keyring',
  bot: { id: '5', name: 'Deskhand', application: '6' },
  invite: 'https://discord.example/invite',
  users: [{ id: '100000000000000001', name: 'Mira' }],
};

let calls: [method: string, path: string, body: unknown][];
let answers: Record<string, unknown>;
let refuse: ApiError | undefined;
let ended: (() => void) | undefined;

// jsdom lays nothing out.
class Nowhere {
  observe = () => undefined;
  disconnect = () => undefined;
}
vi.stubGlobal('ResizeObserver', Nowhere);
Element.prototype.scrollIntoView = () => undefined;

beforeEach(() => {
  calls = [];
  answers = {};
  refuse = undefined;
  vi.spyOn(app.client, 'json').mockImplementation(
    <T>(path: string, _: AbortSignal, body?: unknown, method = 'POST') => {
      const how = body === undefined ? 'GET' : method;
      calls.push([how, path, body]);
      if (refuse) return Promise.reject(refuse);
      return Promise.resolve((answers[`${how} ${path}`] ?? {}) as T);
    },
  );
  vi.spyOn(app.client, 'remove').mockImplementation((path) => {
    calls.push(['DELETE', path, undefined]);
    return Promise.resolve();
  });
});

afterEach(() => {
  ended?.();
  app.discord = undefined;
  app.sessions.clear();
});

/** What was asked for has come. No clock moves. */
async function settle() {
  await new Promise((done) => setImmediate(done));
  flushSync();
}

async function show(state: DiscordState | undefined) {
  app.discord = state;
  const component = mount(Discord, { target: document.body });
  ended = () => {
    ended = undefined;
    void unmount(component);
  };
  flushSync();
  await settle();
}

const text = () => (document.body.textContent ?? '').replace(/\s+/g, ' ');
const button = (name: string) => {
  const found = [...document.querySelectorAll('button')].find(
    (one) => (one.getAttribute('aria-label') ?? one.textContent.trim()) === name,
  );
  if (!found) throw new Error(`no button ${name}: ${text()}`);
  return found;
};
const field = (name: string) => {
  const found = [...document.querySelectorAll('input')].find(
    (one) => one.getAttribute('aria-label') === name || one.labels?.[0]?.textContent.trim() === name,
  );
  if (!found) throw new Error(`no field ${name}`);
  return found;
};

function type(name: string, value: string) {
  const input = field(name);
  input.value = value;
  input.dispatchEvent(new InputEvent('input', { bubbles: true }));
  flushSync();
}

async function press(name: string) {
  button(name).click();
  await settle();
}

test('what is not known yet is asked for, and a failure can be tried again', async () => {
  refuse = new ApiError('network');
  await show(undefined);
  expect(document.querySelector('[role=alert]')?.textContent).toContain('Deskhand does not answer');
  refuse = undefined;
  answers['GET /client/discord'] = fresh;
  await press('Try again');
  expect(text()).toContain('How to set it up');
});

test('the steps lead to a token, which is sent and never shown', async () => {
  await show(fresh);
  expect(text()).toContain('Message Content Intent');
  expect(button('Save the token').disabled).toBe(true);
  expect(field('Bot token').type).toBe('password');
  type('Bot token', ' a-token ');
  await press('Save the token');
  expect(calls.at(-1)).toEqual(['PUT', '/client/discord', { token: 'a-token' }]);
  app.discord = set;
  flushSync();
  expect(text()).not.toContain('How to set it up');
  expect(document.body.innerHTML).not.toContain('a-token');
});

test('a token that is refused stays to be looked at, and the reason is said', async () => {
  await show(fresh);
  type('Bot token', 'wrong');
  refuse = new ApiError('discord.token_invalid', {}, 400);
  await press('Save the token');
  expect(text()).toContain('Discord refuses the token.');
  expect(field('Bot token').value).toBe('wrong');
});

test('where Discord is goes along with the token', async () => {
  await show(fresh);
  type('Bot token', 'abc');
  const details = document.querySelector('details');
  if (!details) throw new Error('no details');
  details.open = true;
  details.dispatchEvent(new Event('toggle'));
  flushSync();
  type('API', 'http://127.0.0.1:1/api');
  expect(details.open).toBe(true); // it was closed by the first letter
  type('Gateway', 'ws://127.0.0.1:1/gateway');
  await press('Save the token');
  expect(calls.at(-1)?.[2]).toEqual({
    token: 'abc',
    restUrl: 'http://127.0.0.1:1/api',
    gatewayUrl: 'ws://127.0.0.1:1/gateway',
  });
});

test('it is switched on and off, and the reason why it does not work is shown', async () => {
  await show({ ...set, enabled: false, status: 'off' });
  const knob = () => document.querySelector<HTMLButtonElement>('[role=switch]');
  expect(knob()?.getAttribute('aria-checked')).toBe('false');
  await press('Discord on');
  expect(calls.at(-1)).toEqual(['PUT', '/client/discord', { enabled: true }]);
  app.discord = { ...set, status: 'refused', reason: 'discord.intents', detail: '4014' };
  flushSync();
  expect(knob()?.getAttribute('aria-checked')).toBe('true');
  expect(document.querySelector('[role=alert]')?.textContent).toMatch(/Message Content Intent.*4014/s);
});

test('people are added and removed as a whole list, and one that is no id is said', async () => {
  await show(set);
  type('Id of a person', 'somebody');
  refuse = new ApiError('discord.user', { id: 'somebody' }, 400);
  await press('Add');
  expect(text()).toContain('nobody with the id somebody');
  expect(field('Id of a person').value).toBe('somebody');
  refuse = undefined;
  type('Id of a person', ' 200000000000000002 ');
  await press('Add');
  expect(calls.at(-1)?.[2]).toEqual({ users: ['100000000000000001', '200000000000000002'] });
  expect(field('Id of a person').value).toBe('');
  type('Id of a person', '100000000000000001');
  const before = calls.length;
  await press('Add');
  expect(calls.length).toBe(before); // is heard already
  await press('Remove Mira');
  expect(calls.at(-1)?.[2]).toEqual({ users: [] });
});

test('that nobody is heard is said while it is on', async () => {
  await show({ ...set, users: [] });
  expect(text()).toContain('Nobody is heard yet');
});

test('bindings say what they lead to and what is wrong with them, and can be undone', async () => {
  app.sessions.set('s1', session({ id: 's1', title: 'Fix login' }));
  await show({
    ...set,
    bindings: [
      { channel: '11', name: 'lighthouse', guild: '9', guildName: 'Workshop', session: 's1', createdAt: at },
      {
        channel: '12',
        name: 'ideas',
        guild: '9',
        agent: 'mock',
        directory: '/home/ada/app',
        createdAt: at,
        problem: 'forbidden',
      },
    ],
  });
  const rows = [...document.querySelectorAll('li')].map((row) => row.textContent.replace(/\s+/g, ' '));
  expect(rows.find((row) => row.includes('#lighthouse'))).toMatch(/Workshop.*Fix login/);
  expect(rows.find((row) => row.includes('#ideas'))).toMatch(/mock in \/home\/ada\/app.*may not write there/);
  await press('Unbind #lighthouse');
  expect(calls.at(-1)).toEqual(['DELETE', '/client/discord/bindings/11', undefined]);
});

test('a channel is bound to a conversation, or to a directory and an agent', async () => {
  app.sessions.set('s1', session({ id: 's1', title: 'Fix login' }));
  answers['GET /client/discord/channels'] = {
    items: [{ id: '9', name: 'Workshop', channels: [{ id: '11', name: 'lighthouse', kind: 'text' }] }],
  };
  await show(set);
  await press('Bind a channel');
  expect(button('Bind').disabled).toBe(true);
  await press('Choose a channel: ');
  document.querySelector<HTMLElement>('[role=option]')?.click();
  await settle();
  await press('Bind');
  expect(calls.at(-1)).toEqual(['PUT', '/client/discord/bindings/11', { session: 's1' }]);
  expect([...document.querySelectorAll('form')].some((one) => one.getAttribute('aria-label'))).toBe(false);
});

test('a binding that is refused leaves the form as it was', async () => {
  app.sessions.set('s1', session({ id: 's1', title: 'Fix login' }));
  answers['GET /client/discord/channels'] = {
    items: [{ id: '9', name: 'Workshop', channels: [{ id: '11', name: 'lighthouse', kind: 'text' }] }],
  };
  await show(set);
  await press('Bind a channel');
  await press('Choose a channel: ');
  document.querySelector<HTMLElement>('[role=option]')?.click();
  await settle();
  refuse = new ApiError('discord.bound', { name: '#general' }, 409);
  await press('Bind');
  expect(text()).toContain('has a channel already: #general');
  expect(button('Bind').disabled).toBe(false);
});

test('the check says what is missing, and that nothing is', async () => {
  answers['POST /client/discord/check'] = {
    items: [
      { id: 'token', status: 'ok' },
      { id: 'intent.content', status: 'missing' },
      { id: 'commands', status: 'unknown' },
    ],
  };
  await show(set);
  await press('Check now');
  expect(text()).toContain('1 thing is missing');
  expect(text()).toContain('It is off, so the bot does not get what people write.');
  answers['POST /client/discord/check'] = { items: [{ id: 'token', status: 'ok' }] };
  await press('Check now');
  expect(text()).toContain('Nothing is missing');
});

test('the bot is forgotten after a second thought alone', async () => {
  await show(set);
  await press('Forget the bot…');
  expect(document.activeElement?.textContent.trim()).toBe('Keep');
  await press('Keep');
  expect(calls).toEqual([]);
  await press('Forget the bot…');
  await press('Forget');
  expect(calls.at(-1)).toEqual(['DELETE', '/client/discord', undefined]);
});
