import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Login as LoginRecord, LoginMethods } from '../api/records';
import { ApiError } from '../api/errors';
import { client, logins, toasts } from '../state/state';
import Login from './Login.svelte';

// The dialog on a fake server. The browser tests cover the terminal.

const offer: LoginMethods = {
  methods: [
    { id: 'account', name: 'Account', description: 'Opens the browser', type: 'agent' },
    {
      id: 'key',
      name: 'API key',
      type: 'env',
      link: 'https://keys.example/new',
      vars: [
        { name: 'ADA_KEY', label: 'Key', secret: true, optional: false, set: false },
        { name: 'ADA_URL', secret: false, optional: true, set: true },
      ],
    },
  ],
  logout: true,
  keyring: 'system',
};
const running: LoginRecord = {
  id: 'l1',
  agent: 'ada',
  method: 'account',
  type: 'agent',
  state: 'running',
  startedAt: '2026-11-21T14:00:00.000Z',
};

let ended: (() => void) | undefined;
let closed: boolean;
let start: ReturnType<typeof vi.fn>;
let cancel: ReturnType<typeof vi.fn>;

beforeEach(() => {
  closed = false;
  start = vi.spyOn(client, 'startLogin').mockResolvedValue(running);
  cancel = vi.spyOn(client, 'cancelLogin').mockResolvedValue();
});

afterEach(() => {
  ended?.();
  ended = undefined;
  logins.byId.clear();
  document.body.replaceChildren();
});

async function settle() {
  await new Promise((done) => setTimeout(done, 0));
  flushSync();
}

async function open(methods: LoginMethods | ApiError = offer) {
  const asked = vi.spyOn(client, 'loginMethods');
  if (methods instanceof ApiError) asked.mockRejectedValueOnce(methods);
  else asked.mockResolvedValue(methods);
  const component = mount(Login, {
    target: document.body,
    props: { agent: { id: 'ada', name: 'Ada' }, close: () => (closed = true) },
  });
  flushSync();
  ended = () => void unmount(component);
  await settle();
  return asked;
}

const text = () => document.body.textContent?.replace(/\s+/g, ' ') ?? '';
const button = (name: string) =>
  [...document.querySelectorAll('button')].find((one) => one.textContent?.trim().startsWith(name));
async function click(name: string) {
  const found = button(name);
  if (!found) throw new Error(`no button ${name} in ${text()}`);
  found.click();
  flushSync();
  await settle();
}

test('a login by the agent waits, can be cancelled, and then another way can be chosen', async () => {
  await open();
  expect(document.activeElement?.textContent).toContain('Account');
  await click('Account');
  expect(start).toHaveBeenCalledWith('ada', 'account', undefined);
  expect(text()).toContain('Waiting for the login to Ada');
  logins.put({ ...running, url: 'https://log.in/here' });
  flushSync();
  expect(text()).toContain('https://log.in/here');
  await click('Cancel');
  expect(cancel).toHaveBeenCalledWith('l1');
  expect(button('API key')).toBeDefined();
});

test('the end is told by an event, and closing afterwards cancels nothing', async () => {
  await open();
  await click('Account');
  logins.put({ ...running, state: 'done' });
  flushSync();
  expect(text()).toContain('Logged in to Ada');
  expect(toasts.announcement).toBe('Logged in to Ada');
  await click('Done');
  expect(closed).toBe(true);
  ended?.();
  ended = undefined;
  expect(cancel).not.toHaveBeenCalled();
});

test('who goes away ends the login, also when it was only about to begin', async () => {
  await open();
  await click('Account');
  ended?.();
  expect(cancel).toHaveBeenCalledWith('l1');
  cancel.mockClear();

  let began: (login: LoginRecord) => void = () => undefined;
  start.mockReturnValue(new Promise<LoginRecord>((done) => (began = done)));
  logins.byId.clear();
  await open();
  await click('Account');
  ended?.();
  ended = undefined;
  expect(cancel).not.toHaveBeenCalled();
  began({ ...running, id: 'l2' });
  await settle();
  expect(cancel).toHaveBeenCalledWith('l2');
});

test('values are asked for, with what is missing said at its field', async () => {
  await open();
  await click('API key');
  expect(text()).toContain('It is kept in the keyring of this computer, and given to Ada when it starts.');
  const [key, url] = [...document.querySelectorAll('input')];
  expect(document.activeElement).toBe(key);
  expect([key?.type, url?.type]).toEqual(['password', 'text']);
  expect(url?.placeholder).toBe('Set. Leave empty to keep it.');
  await click('Log in');
  expect(start).not.toHaveBeenCalled();
  expect(key?.getAttribute('aria-invalid')).toBe('true');
  document.querySelector<HTMLButtonElement>('button[aria-label="Show Key"]')?.click();
  flushSync();
  expect(key?.type).toBe('text');
  if (key) key.value = ' s3cret ';
  key?.dispatchEvent(new Event('input', { bubbles: true }));
  start.mockResolvedValue({
    ...running,
    type: 'env',
    state: 'done',
    warning: 'kept as plain text in /v.json',
  });
  await click('Log in');
  expect(start).toHaveBeenCalledWith('ada', 'key', { ADA_KEY: 's3cret' });
  expect(text()).toContain('Logged in to Ada');
  expect(text()).toContain('What you entered is kept as plain text in /v.json');
});

test('what was typed for a method is there again after a failure and a cancel, and gone after success', async () => {
  await open();
  await click('API key');
  const fields = () => [...document.querySelectorAll('input')];
  const [key, url] = fields();
  if (!key || !url) throw new Error('no fields');
  key.value = 's3cret';
  url.value = 'https://typo';
  for (const field of [key, url]) field.dispatchEvent(new InputEvent('input', { bubbles: true }));
  start.mockResolvedValue({ ...running, type: 'env', method: 'key' });
  await click('Log in');
  logins.put({
    ...running,
    type: 'env',
    method: 'key',
    state: 'failed',
    code: 'login.failed',
    detail: 'No.',
  });
  flushSync();
  await click('Try again');
  expect(fields().map((field) => field.value)).toEqual(['s3cret', 'https://typo']);

  start.mockResolvedValue({ ...running, id: 'l2', type: 'env', method: 'key' });
  await click('Log in');
  await click('Cancel');
  expect(fields().map((field) => field.value)).toEqual(['s3cret', 'https://typo']);
  await click('Back');
  await click('API key');
  expect(fields().map((field) => field.value)).toEqual(['s3cret', 'https://typo']);

  start.mockResolvedValue({ ...running, id: 'l3', type: 'env', method: 'key' });
  await click('Log in');
  logins.put({ ...running, id: 'l3', type: 'env', method: 'key', state: 'done' });
  flushSync();
  ended?.();
  logins.byId.clear();
  await open();
  await click('API key');
  expect(fields().map((field) => field.value)).toEqual(['', '']);
  expect(JSON.stringify([{ ...localStorage }, { ...sessionStorage }])).not.toContain('s3cret');
});

test('without a keyring it is said where values are kept', async () => {
  await open({ ...offer, keyring: 'file', warning: 'kept as plain text in /v.json: No service answers.' });
  await click('API key');
  expect(text()).toContain('What you enter is kept as plain text in /v.json: No service answers.');
  expect(text()).toContain('No service answers.');
  expect(text()).not.toContain('kept in the keyring');
});

test('a failure says why, and another way can be tried', async () => {
  await open();
  await click('Account');
  logins.put({
    ...running,
    state: 'failed',
    code: 'login.failed',
    detail: 'The code has expired.',
    stderr: 'boom',
  });
  flushSync();
  expect(document.querySelector('[role=alert]')?.textContent).toContain('The code has expired.');
  expect(document.querySelector('pre')?.textContent).toBe('boom');
  await click('Try again');
  expect(button('Account')).toBeDefined();
});

test('an agent that cannot be asked is asked again', async () => {
  const asked = await open(new ApiError('login.failed', {}, 409, 'It did not start.'));
  expect(document.querySelector('[role=alert]')).not.toBeNull();
  asked.mockResolvedValue(offer);
  await click('Try again');
  expect(button('Account')).toBeDefined();
  expect(document.querySelector('[role=alert]')).toBeNull();
});

test('one that runs already is gone on with', async () => {
  logins.put(running);
  const asked = await open();
  expect(asked).not.toHaveBeenCalled();
  expect(text()).toContain('Waiting for the login to Ada');
});

test('one that another window has begun is gone on with, too', async () => {
  await open();
  start.mockRejectedValue(new ApiError('login.running', { agent: 'ada', login: 'l1' }, 409));
  vi.spyOn(client, 'loginState').mockResolvedValue(running);
  await click('Account');
  expect(text()).toContain('Waiting for the login to Ada');
});

test('logging out', async () => {
  const logout = vi.spyOn(client, 'logout').mockResolvedValue();
  await open();
  await click('Log out');
  expect(logout).toHaveBeenCalled();
  expect(text()).toContain('Logged out of Ada');
  expect(button('Account')).toBeDefined();
});

/** Presses beside the dialog, which is a press on the dialog element itself. */
function pressBeside() {
  document.querySelector('dialog')?.dispatchEvent(new Event('pointerdown', { bubbles: true }));
  flushSync();
}

function escape() {
  document
    .querySelector('dialog')
    ?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, cancelable: true }));
  flushSync();
}

test('a press beside the dialog ends no login that runs, nor takes away what was typed', async () => {
  await open();
  await click('API key');
  const [key] = document.querySelectorAll<HTMLInputElement>('input');
  if (!key) throw new Error('no field');
  key.value = 's3cret';
  key.dispatchEvent(new InputEvent('input', { bubbles: true }));
  flushSync();
  pressBeside();
  escape();
  expect(closed).toBe(false);
  await click('Back');
  await click('Account');
  pressBeside();
  escape();
  await settle();
  expect(closed).toBe(false);
  expect(cancel).not.toHaveBeenCalled();
  await click('Cancel');
  pressBeside();
  expect(closed).toBe(true);
});

test('a login is done when the agent has begun a conversation, and says why it has not', async () => {
  await open();
  await click('Account');
  logins.put({ ...running, proving: true });
  flushSync();
  expect(text()).toContain('Checking that Ada can begin a conversation');
  expect(text()).not.toContain('Logged in to Ada');
  expect(button('Cancel')).toBeDefined();
  logins.put({
    ...running,
    state: 'failed',
    code: 'login.unproven',
    detail: 'The key is missing',
    endedAt: running.startedAt,
  });
  flushSync();
  expect(text()).toContain('Ada cannot begin a conversation: The key is missing');
  expect(text()).not.toContain('Logged in to Ada');
});
