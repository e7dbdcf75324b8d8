import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import { here } from '../api/places';
import type { Hello, WorktreePlan } from '../api/records';
import { emptyBook } from '../state/agents';
import {
  catalogue,
  client,
  comparisons,
  conversations,
  logins,
  navigation,
  preferences,
  server,
  toasts,
} from '../state/state';
import { answering } from '../test/calls';
import { agent, session } from '../test/records';
import Start from './Start.svelte';
import { written } from './written.svelte';

// The start screen on a fake server: its calls, and the sessions that begin.

const plan: WorktreePlan = {
  base: 'main',
  bases: [{ name: 'main' }, { name: 'origin/main', remote: true }],
  branch: 'deskhand/new',
  changed: 0,
  cwd: '/home/ada/app-new',
  path: '/home/ada/app-new',
  repository: '/home/ada/app',
};
const claude = agent({ id: 'claude', name: 'Claude', state: 'ready' });
const demo = agent({ id: 'mock', name: 'Demo agent', state: 'ready', source: 'builtin' });

let ended: (() => void) | undefined;
let begun: ReturnType<typeof vi.spyOn>;

beforeEach(() => {
  Object.assign(window, { matchMedia: () => ({ matches: true }) });
  localStorage.clear();
  written.sent(written.draft, []);
  catalogue.book = { ...emptyBook, listed: [claude, demo] };
  navigation.view = { name: 'new', cwd: '/home/ada/app' };
  answering(client, (method, address) => {
    if (address.startsWith('/client/worktrees/plan')) return plan;
    if (method === 'POST' && address === '/client/demo') return { path: '/home/ada/.cache/corner-shop' };
    throw new ApiError('network');
  });
  begun = vi.spyOn(client, 'createSession').mockResolvedValue(session());
});

afterEach(async () => {
  leave();
  await vi.waitFor(() => expect(field()).toBeNull());
  vi.restoreAllMocks();
  conversations.sessions.clear();
  catalogue.book = emptyBook;
  navigation.view = { name: 'new' };
  logins.shown = undefined;
  server.hello = undefined;
  preferences.settings = undefined;
  document.body.replaceChildren();
});

const soon = (check: () => void) => vi.waitFor(check, { timeout: 10_000 });
const field = () => document.querySelector('textarea');
const chip = (name: string) =>
  document.querySelector<HTMLButtonElement>(`button[aria-label^="${name}: "]`)?.ariaLabel ??
  document.querySelector(`button[aria-label^="${name}: "]`)?.getAttribute('aria-label');

function show() {
  const screen = mount(Start, { target: document.body });
  ended = () => void unmount(screen);
  flushSync();
}

function leave() {
  ended?.();
  ended = undefined;
  flushSync();
}

function type(text: string) {
  const into = field();
  if (!into) throw new Error('no field');
  into.value = text;
  into.dispatchEvent(new Event('input', { bubbles: true }));
  flushSync();
}

function enter() {
  field()?.dispatchEvent(
    new KeyboardEvent('keydown', { key: 'Enter', code: 'Enter', bubbles: true, cancelable: true }),
  );
  flushSync();
}

const body = () => begun.mock.calls.at(-1)?.[0];

test('a message and Enter begin a conversation, in one call, and nothing does before', async () => {
  show();
  type('Fix it');
  expect(begun).not.toHaveBeenCalled();
  enter();
  await soon(() => expect(begun).toHaveBeenCalledTimes(1));
  expect(body()).toEqual({ agent: 'claude', cwd: '/home/ada/app', message: 'Fix it' });
  await soon(() => expect(navigation.view).toEqual({ name: 'session', id: 's1' }));
  expect(written.draft).toBe('');
  expect(localStorage.getItem('deskhand.new')).toBeNull();
});

test('a failure loses no text', async () => {
  begun.mockRejectedValue(new ApiError('directory.missing', { path: '/home/ada/app' }));
  show();
  type('Fix it');
  enter();
  await soon(() => expect(document.querySelector('[role=status]')?.textContent).toContain('does not exist'));
  expect(field()?.value).toBe('Fix it');
});

test('what was written is there again after another screen', async () => {
  show();
  type('half a thought');
  leave();
  await soon(() => expect(written.draft).toBe('half a thought'));
  expect(localStorage.getItem('deskhand.new')).toContain('half a thought');
  show();
  expect(field()?.value).toBe('half a thought');
});

test('a message that is written for one project stays there when the composer is opened in another', async () => {
  show();
  type('half a thought');
  leave();
  await soon(() => expect(written.draft).toBe('half a thought'));
  navigation.view = { name: 'new', near: { cwd: '/home/ada/other', place: 'local' } };
  show();
  expect(chip('Directory')).toBe('Directory: app');
  type('');
  leave();
  await soon(() => expect(written.draft).toBe(''));
  navigation.view = { ...navigation.view };
  show();
  expect(chip('Directory')).toBe('Directory: other');
});

test('the agent, and whether in a worktree, are those of the last conversation in the project', async () => {
  const other = agent({ id: 'codex', name: 'Codex', state: 'ready' });
  catalogue.book = { ...catalogue.book, listed: [claude, other, demo] };
  conversations.sessions.set(
    'a',
    session({
      id: 'a',
      agent: 'codex',
      workspace: { id: 'w', path: '/home/ada/app-x' },
      worktree: { branch: 'x', from: '/home/ada/app', state: 'ready' } as never,
    }),
  );
  show();
  expect(chip('Agent')).toBe('Agent: Codex');
  type('Go on');
  enter();
  await soon(() => expect(begun).toHaveBeenCalledTimes(1));
  expect(body()).toEqual({ agent: 'codex', cwd: '/home/ada/app', message: 'Go on', worktree: true });
});

const worktree = () =>
  [...document.querySelectorAll('button')].find((one) => one.textContent.trim() === 'New worktree');

test('a chosen worktree is asked for with the message', async () => {
  show();
  await soon(() => {
    flushSync();
    expect(worktree()?.getAttribute('aria-pressed')).toBe('false');
  });
  worktree()?.click();
  flushSync();
  expect(worktree()?.getAttribute('aria-pressed')).toBe('true');
  type('Go on');
  enter();
  await soon(() => expect(begun).toHaveBeenCalledTimes(1));
  expect(body()).toMatchObject({ worktree: true });
});

test('the base of a worktree is searched for, or is a commit', async () => {
  show();
  await soon(() => {
    flushSync();
    expect(worktree()).toBeDefined();
  });
  worktree()?.click();
  flushSync();
  const search = () => document.querySelector<HTMLInputElement>('input[role=combobox]');
  const find = async (words: string) => {
    [...document.querySelectorAll('button')]
      .find((one) => one.getAttribute('aria-label')?.startsWith('Base branch: '))
      ?.click();
    await soon(() => {
      flushSync();
      expect(document.activeElement).toBe(search());
    });
    const field = search();
    if (!field) throw new Error('there is no field to search in');
    field.value = words;
    field.dispatchEvent(new InputEvent('input', { bubbles: true }));
    flushSync();
    const shown = [...document.querySelectorAll('[role=option]')].map((one) =>
      one.textContent.trim().replace(/\s+/g, ' '),
    );
    field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
    flushSync();
    return shown;
  };
  expect(await find('nothing')).toEqual([]);
  expect(await find('4f0c1d2')).toEqual(['4f0c1d2 a commit']);
  expect(await find('ORI')).toEqual(['origin/main as of the last fetch']);
  type('Go on');
  enter();
  await soon(() => expect(begun).toHaveBeenCalledTimes(1));
  expect(body()).toMatchObject({ worktree: true, base: 'origin/main' });
});

test('it begins where the program was started, else in the newest directory', () => {
  navigation.view = { name: 'new' };
  conversations.sessions.set(
    'b',
    session({ id: 'b', workspace: { id: 'b', path: '/home/ada/b' }, cwd: '/home/ada/b' }),
  );
  show();
  expect(chip('Directory')).toBe('Directory: b');
  leave();
  server.hello = { home: '/home/ada', started: '/home/ada/here' } as Hello;
  show();
  expect(chip('Directory')).toBe('Directory: here');
});

test('the directory that is offered stays when somebody works elsewhere', () => {
  navigation.view = { name: 'new' };
  const there = (id: string, path: string, updatedAt: string) =>
    conversations.sessions.set(
      id,
      session({ id, agent: 'claude', workspace: { id, path }, cwd: path, updatedAt }),
    );
  show();
  there('a', '/home/ada/a', '2026-11-21T14:00:00.000Z'); // the list arrives
  flushSync();
  expect(chip('Directory')).toBe('Directory: a');
  there('b', '/home/ada/b', '2026-11-21T15:00:00.000Z');
  flushSync();
  expect(chip('Directory')).toBe('Directory: a');
});

test('the demo agent works in its sample project, which is made with the message', async () => {
  catalogue.book = { ...emptyBook, listed: [demo] };
  navigation.view = { name: 'new' };
  show();
  expect(chip('Directory')).toBe('Directory: Sample project');
  type('Fix the failing test');
  enter();
  await soon(() => expect(begun).toHaveBeenCalledTimes(1));
  expect(body()).toEqual({
    agent: 'mock',
    cwd: '/home/ada/.cache/corner-shop',
    message: 'Fix the failing test',
  });
});

test('agents that cannot start are not on the screen', () => {
  catalogue.book = {
    ...emptyBook,
    listed: [claude, agent({ id: 'gone', name: 'Gone', state: 'not_found' }), demo],
  };
  show();
  document.querySelector<HTMLElement>('button[aria-label^="Agent: "]')?.click();
  flushSync();
  const names = [...document.querySelectorAll('[role=option]')].map((one) => one.textContent.trim());
  expect(names.map((name) => name.split('  ')[0])).toHaveLength(3);
  expect(names.join()).not.toContain('Gone');
  expect(names.at(-1)).toContain('More agents…');
});

test('an agent that needs a login leads to it', () => {
  catalogue.book = { ...emptyBook, listed: [agent({ id: 'shy', name: 'Shy', state: 'needs_login' })] };
  show();
  [...document.querySelectorAll('button')].find((one) => one.textContent.trim() === 'Log in')?.click();
  expect(logins.shown).toBe('shy');
});

test('who has gone elsewhere while it was made stays there', async () => {
  let made: () => void = () => undefined;
  begun.mockImplementation(() => new Promise((done) => (made = () => done(session()))));
  show();
  type('Go on');
  enter();
  await soon(() => expect(begun).toHaveBeenCalledTimes(1));
  navigation.view = { name: 'inbox' };
  made();
  await soon(() => expect(conversations.sessions.has('s1')).toBe(true));
  expect(navigation.view).toEqual({ name: 'inbox' });
});

test('who has gone elsewhere while it was made learns why it was not, and finds the text again', async () => {
  let fail: (error: Error) => void = () => undefined;
  begun.mockImplementation(() => new Promise((_, no) => (fail = no)));
  const told = vi.spyOn(toasts, 'show');
  show();
  type('Go on');
  enter();
  await soon(() => expect(begun).toHaveBeenCalledTimes(1));
  leave();
  navigation.view = { name: 'inbox' };
  fail(new ApiError('worktree.no_commit'));
  await soon(() => expect(told).toHaveBeenCalled());
  navigation.view = { name: 'new' };
  show();
  expect(field()?.value).toBe('Go on');
});

test('what is typed while it is made goes into the draft of the conversation', async () => {
  let made: () => void = () => undefined;
  begun.mockImplementation(() => new Promise((done) => (made = () => done(session()))));
  const patched = vi.spyOn(conversations, 'patch').mockResolvedValue(true);
  show();
  type('Go on');
  enter();
  await soon(() => expect(begun).toHaveBeenCalledTimes(1));
  type('Go on, and then');
  made();
  await soon(() => expect(patched).toHaveBeenCalledWith('s1', { draft: ', and then' }));
  expect(written.draft).toBe('');
});

const codex = agent({ id: 'codex', name: 'Codex', state: 'ready' });

test('in a project without conversations the defaults of the settings count, in others its last choices', async () => {
  catalogue.book = { ...emptyBook, listed: [claude, codex, demo] };
  localStorage.setItem('deskhand.agent', 'claude');
  preferences.settings = { defaultAgent: 'codex', newWorktree: true } as never;
  show();
  const wanted = () => document.querySelector('button[aria-pressed]')?.getAttribute('aria-pressed');
  await soon(() => expect(wanted()).toBe('true'));
  expect(chip('Agent')).toContain('Codex');
  type('Fix it');
  enter();
  await soon(() => expect(navigation.view.name).toBe('session'));
  expect(body()).toMatchObject({ agent: 'codex', worktree: true });

  leave();
  conversations.sessions.set('s1', session({ agent: 'claude' }));
  navigation.view = { name: 'new', cwd: session().workspace.path };
  show();
  await soon(() => expect(wanted()).toBe('false'));
  expect(chip('Agent')).toContain('Claude');
});

test('a worktree that the settings want is not asked for where none is possible', async () => {
  answering(client, () => {
    throw new ApiError('worktree.not_git', { path: '/home/ada/app' });
  });
  preferences.settings = { defaultAgent: '', newWorktree: true } as never;
  show();
  await soon(() => expect(client.call).toHaveBeenCalled());
  await new Promise((done) => setTimeout(done, 50));
  flushSync();
  expect(document.querySelector('button[aria-pressed]')).toBeNull();
  type('Fix it');
  enter();
  await soon(() => expect(begun).toHaveBeenCalledTimes(1));
  expect(body()).toEqual({ agent: 'claude', cwd: '/home/ada/app', message: 'Fix it' });
});

// Several agents.

const add = () => {
  const plus = document.querySelector<HTMLButtonElement>(
    'button[aria-label="Compare with another agent"], button[aria-label="Add another agent"]',
  );
  plus?.click();
  flushSync();
  return plus !== null;
};
const sending = () => document.querySelector('button.accent')?.textContent.trim();

test('a message goes to several agents, each in a worktree, once they are chosen', async () => {
  catalogue.book = {
    ...emptyBook,
    listed: [claude, agent({ id: 'codex', name: 'Codex', state: 'ready' }), demo],
  };
  const made = {
    id: 'c1',
    title: 'Fix it',
    cwd: '/home/ada/app',
    repository: '/home/ada/app',
    commit: 'abc',
    createdAt: '2026-11-21T14:00:00.000Z',
    members: [{ session: 's1', agent: 'claude', name: 'Claude', begun: true }],
  };
  const bodies: unknown[] = [];
  let fails = true;
  answering(client, (method, address, { body }) => {
    if (address.startsWith('/client/worktrees/plan')) return plan;
    if (method !== 'POST' || address !== '/client/comparisons') throw new ApiError('network');
    bodies.push(body);
    if (fails) throw new ApiError('compare.full', { most: '4' });
    return made;
  });
  show();
  await soon(() => expect(add()).toBe(true));
  expect(chip('Agent 2')).toBe('Agent 2: Codex');
  expect(add()).toBe(true);
  expect(chip('Agent 3')).toBe('Agent 3: Claude'); // none is left, so the first one again
  expect(sending()).toBe('Send to 3 agents');
  const worktree = [...document.querySelectorAll('button')].find((one) =>
    one.textContent.includes('New worktree'),
  );
  worktree?.click();
  flushSync();
  expect(worktree?.getAttribute('aria-pressed')).toBe('true');
  expect(worktree?.title).toBe('Several agents need a worktree each');
  expect(document.querySelector('.below')?.textContent).toContain('a worktree of its own, from main.');
  expect(add()).toBe(true);
  expect(add()).toBe(false); // four at most
  document.querySelector<HTMLButtonElement>('button[aria-label^="Remove agent 4"]')?.click();
  flushSync();

  type('Fix it');
  enter();
  await soon(() => expect(document.querySelector('.hint')?.textContent).toContain('At most 4 agents'));
  expect(field()?.value).toBe('Fix it');
  expect(written.choices.others).toHaveLength(2);
  fails = false;
  enter();
  await soon(() => expect(navigation.view).toEqual({ name: 'compare', id: 'c1' }));
  expect(bodies).toEqual(
    Array(2).fill({
      cwd: '/home/ada/app',
      message: 'Fix it',
      attachments: [],
      members: [{ agent: 'claude' }, { agent: 'codex' }, { agent: 'claude' }],
    }),
  );
  expect(begun).not.toHaveBeenCalled();
  expect(written.choices).toEqual({});
  comparisons.byId.clear();
});

test('where no worktree is possible, a single agent gets the message', async () => {
  answering(client, (_, address) => {
    throw new ApiError(address.startsWith('/client/worktrees/plan') ? 'worktree.no_repository' : 'network');
  });
  written.choose({ cwd: '/home/ada/app', place: here, others: [{ agent: 'claude' }] });
  show();
  expect(sending()).toBe('Send');
  type('Fix it');
  await soon(() => expect(document.querySelector<HTMLButtonElement>('button.accent')?.disabled).toBe(false));
  expect(add()).toBe(false);
  enter();
  await soon(() => expect(body()).toMatchObject({ agent: 'claude' }));
  expect(body()).not.toHaveProperty('worktree');
});

test('a message for several agents is not sent before it is known whether they can have worktrees', async () => {
  let known: (found: unknown) => void = () => undefined;
  answering(client, (_, address) => {
    if (address.startsWith('/client/worktrees/plan')) return new Promise((done) => (known = done));
    throw new ApiError('network');
  });
  written.choose({ cwd: '/home/ada/app', place: here, others: [{ agent: 'claude' }] });
  show();
  type('Fix it');
  const button = () => document.querySelector<HTMLButtonElement>('button.accent');
  enter();
  expect(begun).not.toHaveBeenCalled();
  expect(button()?.disabled).toBe(true);
  await soon(() => {
    known(plan);
    expect(sending()).toBe('Send to 2 agents');
  });
  expect(button()?.disabled).toBe(false);
});
