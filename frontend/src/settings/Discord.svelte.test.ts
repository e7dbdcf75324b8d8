import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { DiscordState } from '../api/records';
import { ApiError } from '../api/errors';
import { client, conversations, machine, navigation } from '../state/state';
import { answering } from '../test/calls';
import { session } from '../test/records';
import { kept } from '../ui/unsaved.svelte';
import Discord from './Discord.svelte';

// The section of the settings on a fake server: its calls, and the shown texts.

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
/** Calls that get no answer. */
let pending: Set<string>;
/** The server's list of people; the feed reports it when the test says so. */
let heard: DiscordState['users'];
let ended: (() => void) | undefined;

beforeEach(() => {
  calls = [];
  answers = {};
  localStorage.clear();
  refuse = undefined;
  pending = new Set();
  answering(client, (method, path, { body, signal }) => {
    calls.push([method, path, body]);
    if (method === 'DELETE') return undefined;
    if (refuse) throw refuse;
    if (pending.has(`${method} ${path}`)) return new Promise((_, fail) => signalled(signal, fail));
    if (method === 'PUT' && path === '/client/discord') return afterwards(body);
    return answers[`${method} ${path}`] ?? { items: [] };
  });
});

afterEach(() => {
  ended?.();
  kept.clear();
  machine.discord = undefined;
  conversations.sessions.clear();
});

function signalled(signal: AbortSignal | undefined, fail: (why: unknown) => void) {
  signal?.addEventListener('abort', () => fail(signal.reason));
}

/** Returns the server's state after a change. */
function afterwards(body: unknown): DiscordState {
  const { users } = body as { users?: string[] };
  if (users) heard = users.map((id) => heard.find((one) => one.id === id) ?? { id });
  return { ...(machine.discord ?? fresh), users: heard };
}

/** Sends an event of the feed. */
function event(part: Partial<DiscordState>) {
  machine.discord = { ...(machine.discord ?? fresh), ...part };
  flushSync();
}

/** Waits for answers, without moving the clock. */
async function settle() {
  await new Promise((done) => setImmediate(done));
  flushSync();
}

async function show(state: DiscordState | undefined) {
  machine.discord = state;
  heard = state?.users ?? [];
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
  machine.discord = set;
  flushSync();
  await settle();
  expect(text()).not.toContain('Create an application');
  expect(document.body.innerHTML).not.toContain('a-token');
  expect(document.activeElement).toBe(button('Open the invitation')); // the field has disappeared
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
  expect(details.open).toBe(true); // the first letter used to close it
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
  expect(knob()?.nextElementSibling?.textContent).toBe('Off');
  await press('Discord on');
  expect(calls.at(-1)).toEqual(['PUT', '/client/discord', { enabled: true }]);
  machine.discord = { ...set, status: 'refused', reason: 'discord.intents', detail: '4014' };
  flushSync();
  expect(knob()?.getAttribute('aria-checked')).toBe('true');
  expect(knob()?.nextElementSibling?.textContent).toBe('On');
  expect(document.querySelector('[role=alert]')?.textContent).toMatch(/Message Content Intent.*4014/s);
});

test('people are added and removed as a whole list, and one that is no id is said', async () => {
  await show(set);
  type('A person’s ID', 'somebody');
  refuse = new ApiError('discord.user', { id: 'somebody' }, 400);
  await press('Add');
  expect(text()).toContain('nobody with the ID somebody');
  expect(field('A person’s ID').value).toBe('somebody');
  refuse = undefined;
  type('A person’s ID', ' 200000000000000002 ');
  await press('Add');
  expect(calls.at(-1)?.[2]).toEqual({ users: ['100000000000000001', '200000000000000002'] });
  expect(field('A person’s ID').value).toBe('');
  type('A person’s ID', '100000000000000001');
  const before = calls.length;
  await press('Add');
  expect(calls.length).toBe(before); // is in the list already
  await press('Remove Mira');
  expect(calls.at(-1)?.[2]).toEqual({ users: ['200000000000000002'] });
});

test('two changes before the feed tells of the first are both kept', async () => {
  await show(set);
  const [first, second] = ['200000000000000002', '300000000000000003'];
  type('A person’s ID', first);
  await press('Add');
  type('A person’s ID', second);
  await press('Add');
  expect(calls.at(-1)?.[2]).toEqual({ users: ['100000000000000001', first, second] });
  await press('Remove Mira');
  expect(calls.at(-1)?.[2]).toEqual({ users: [first, second] });
  type('A person’s ID', '400000000000000004');
  await press('Add');
  expect(calls.at(-1)?.[2]).toEqual({ users: [first, second, '400000000000000004'] }); // and Mira is not added again
});

test('what the feed tells late of an older list changes nothing, and what is newer counts', async () => {
  await show(set);
  const mira = set.users;
  const both = [...mira, { id: '200000000000000002' }];
  type('A person’s ID', '200000000000000002');
  await press('Add');
  await press('Remove Mira');
  event({ users: mira }); // an event about another change, sent before either
  event({ users: both });
  expect(text()).not.toContain('Mira');
  event({ users: [{ id: '200000000000000002', name: 'Noor' }] });
  expect(text()).toContain('Noor');
  event({ users: mira }); // another window's change
  expect(text()).toContain('Mira');
  expect(text()).not.toContain('Noor');
});

test('the focus stays with what was done about the token', async () => {
  await show({ ...set, invite: undefined } as unknown as DiscordState);
  await press('Another token…');
  expect(document.activeElement).toBe(field('Bot token'));
  await press('Cancel');
  expect(document.activeElement).toBe(button('Another token…'));
  await press('Another token…');
  type('Bot token', 'b-token');
  await press('Save the token');
  expect(document.activeElement).toBe(button('Another token…'));
  await press('Forget the bot…');
  await press('Forget');
  machine.discord = fresh;
  flushSync();
  await settle();
  expect(document.activeElement).toBe(field('Bot token'));
});

test('what is left to do stays until a channel is bound and it has been connected', async () => {
  await show(fresh);
  event({ ...set, enabled: false, status: 'off', users: [] });
  const steps = () =>
    [...document.querySelectorAll('[data-step]')].map(
      (one) => `${one.getAttribute('data-step')} ${/Done/.test(one.textContent)}`,
    );
  expect(steps()).toEqual(['invite false', 'users false', 'bind false', 'switch false']);
  event({ users: set.users });
  expect(steps()).toEqual(['invite false', 'users true', 'bind false', 'switch false']);
  event({ bindings: [{ channel: '11', name: 'lighthouse', guild: '9', session: 's1', createdAt: at }] });
  expect(steps()).toEqual(['invite true', 'users true', 'bind true', 'switch false']);
  event({ enabled: true, status: 'connecting' });
  expect(steps()).toEqual(['invite true', 'users true', 'bind true', 'switch true']);
  event({ status: 'connected' });
  expect(steps()).toEqual([]);
  event({ enabled: false, status: 'off' }); // the person switched it off
  expect(steps()).toEqual([]);
});

test('the section is where the status leads, with the focus', async () => {
  await show(set);
  navigation.show({ name: 'settings', at: 'discord' });
  flushSync();
  await settle();
  expect(document.activeElement?.tagName).toBe('H2');
  expect(document.activeElement?.textContent).toBe('Discord');
  navigation.show({ name: 'new' });
});

test('that nobody is heard is said while it is on', async () => {
  await show({ ...set, users: [] });
  expect(text()).toContain('Nobody is heard yet');
});

test('bindings say what they lead to and what is wrong with them, and can be undone', async () => {
  conversations.sessions.set('s1', session({ id: 's1', title: 'Fix login' }));
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
  expect(rows.find((row) => row.includes('#ideas'))).toMatch(
    /mock in \/home\/ada\/app.*is not allowed to write there/,
  );
  await press('Unbind #lighthouse');
  expect(calls.at(-1)).toEqual(['DELETE', '/client/discord/bindings/11', undefined]);
  expect(document.activeElement).toBe(button('Bind a channel'));
});

test('a channel is bound to a conversation, or to a directory and an agent', async () => {
  conversations.sessions.set('s1', session({ id: 's1', title: 'Fix login' }));
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
  expect(document.activeElement).toBe(button('Bind a channel'));
});

test('that Discord is asked for its channels is shown, and a second press ends it', async () => {
  pending.add('GET /client/discord/channels');
  await show(set);
  await press('Bind a channel');
  expect(button('Asking Discord…').disabled).toBe(false);
  await press('Asking Discord…');
  expect(button('Bind a channel').disabled).toBe(false);
  expect(document.querySelector('[role=alert]')).toBeNull();
  pending.clear();
  await press('Bind a channel');
  expect(document.querySelector('form[aria-label="Bind a channel"]')).not.toBeNull();
});

test('a binding that is refused leaves the form as it was', async () => {
  conversations.sessions.set('s1', session({ id: 's1', title: 'Fix login' }));
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
  expect(text()).toContain('already has a channel: #general');
  expect(button('Bind').disabled).toBe(false);
});

test('another token that is being entered is there again with its form, and given up by Cancel', async () => {
  await show(set);
  await press('Another token…');
  type('Bot token', 'half a tok');
  type('A person’s ID', '1000');
  ended?.();
  document.body.replaceChildren();
  await show(set);
  expect(field('Bot token').value).toBe('half a tok');
  expect(field('A person’s ID').value).toBe('1000');
  expect(document.activeElement).toBe(document.body); // the person has not asked for the form
  await press('Cancel');
  ended?.();
  await show(set);
  expect(button('Another token…')).toBeDefined();
});

test('what was chosen for a channel is chosen again when the form is opened again', async () => {
  answers['GET /client/discord/channels'] = {
    items: [{ id: '9', name: 'Workshop', channels: [{ id: '11', name: 'lighthouse', kind: 'text' }] }],
  };
  await show(set);
  await press('Bind a channel');
  type('Directory', '/home/ada/app');
  ended?.();
  document.body.replaceChildren();
  await show(set);
  await press('Bind a channel');
  expect(field('Directory').value).toBe('/home/ada/app');
  await press('Cancel');
  await press('Bind a channel');
  expect(field('Directory').value).toBe('');
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
  expect(text()).toContain('It is off, so the bot does not receive what people write.');
  answers['POST /client/discord/check'] = { items: [{ id: 'token', status: 'ok' }] };
  await press('Check now');
  expect(text()).toContain('Nothing is missing');
});

test('what was checked before a change, or before a check that fails, is not shown any more', async () => {
  answers['POST /client/discord/check'] = { items: [{ id: 'token', status: 'ok' }] };
  await show(set);
  const changes: Partial<DiscordState>[] = [
    { enabled: false },
    { status: 'off' },
    { users: [] },
    { bindings: [{ channel: '11', guild: '9', session: 's1', createdAt: at }] },
    { bot: { id: '7', name: 'Another', application: '8' } },
  ];
  for (const change of changes) {
    await press('Check now');
    event({ ignored: { strangers: 1, bots: 0, direct: 0, unbound: 0 } }); // does not change the form
    expect(text()).toContain('Nothing is missing');
    event(change);
    expect(text(), JSON.stringify(change)).not.toContain('Nothing is missing');
  }
  await press('Check now');
  refuse = new ApiError('discord.unreachable', {}, 502);
  await press('Check now');
  expect(text()).toContain('Discord cannot be reached');
  expect(text()).not.toContain('Nothing is missing');
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
