import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import { emptyBook } from '../state/agents';
import { catalogue, client, conversations, logins, navigation, toasts } from '../state/state';
import { answering } from '../test/calls';
import { agent, session } from '../test/records';
import type { WorktreePlan } from '../api/records';
import NewConversation from './NewConversation.svelte';

// The start screen on a fake server: its calls, and the sessions that begin.

const plan: WorktreePlan = {
  base: 'main',
  branch: 'deskhand/new',
  changed: 0,
  cwd: '/home/ada/app-new',
  path: '/home/ada/app-new',
  repository: '/home/ada/app',
};

let ended: (() => void) | undefined;
let plans: { cwd: string; done: (plan: WorktreePlan) => void; fail: (error: Error) => void }[];
let begun: ReturnType<typeof vi.spyOn>;

beforeEach(() => {
  localStorage.clear();
  plans = [];
  catalogue.book = { ...emptyBook, listed: [agent({ id: 'claude', name: 'Claude', state: 'ready' })] };
  navigation.view = { name: 'new', cwd: '/home/ada/app' };
  answering(client, (_, address, { query }) => {
    if (!address.startsWith('/client/worktrees/plan')) throw new ApiError('network');
    return new Promise<WorktreePlan>((done, fail) => plans.push({ cwd: String(query?.['cwd']), done, fail }));
  });
  begun = vi.spyOn(client, 'createSession').mockResolvedValue(session());
});

afterEach(() => {
  ended?.();
  ended = undefined;
  vi.restoreAllMocks();
  conversations.sessions.clear();
  catalogue.book = emptyBook;
  navigation.view = { name: 'new' };
  logins.shown = undefined;
  document.body.replaceChildren();
});

const soon = (check: () => void) => vi.waitFor(check, { timeout: 10_000 });

function show() {
  const screen = mount(NewConversation, { target: document.body });
  ended = () => void unmount(screen);
  flushSync();
}

const box = () => document.querySelector<HTMLInputElement>('input[type=checkbox]');
const branch = () => document.querySelector<HTMLInputElement>('.branch input');
const directory = () => document.querySelector<HTMLInputElement>('.pick input');

function type(into: HTMLInputElement | null, text: string) {
  if (!into) throw new Error('no field');
  into.value = text;
  into.dispatchEvent(new Event('input', { bubbles: true }));
  flushSync();
}

async function start() {
  document.querySelector('form')?.requestSubmit();
  flushSync();
  await Promise.resolve();
}

/** Waits for the call for a plan, and answers it. */
async function planned(cwd: string, made = plan) {
  await soon(() => expect(plans.at(-1)?.cwd).toBe(cwd));
  plans.at(-1)?.done(made);
  await soon(() => expect(box()).not.toBeNull());
  flushSync();
}

async function want() {
  show();
  await planned('/home/ada/app');
  box()?.click();
  flushSync();
}

const refused = new ApiError('worktree.no_commit');

test('a worktree that is wanted is waited for', async () => {
  await want();
  type(directory(), '/home/ada/other');
  await start();
  expect(begun).not.toHaveBeenCalled();
  await soon(() => expect(plans.at(-1)?.cwd).toBe('/home/ada/other'));
  plans.at(-1)?.done({ ...plan, branch: 'deskhand/other' });
  await soon(() => expect(begun).toHaveBeenCalledTimes(1));
  expect(begun.mock.calls[0]?.[0]).toMatchObject({
    cwd: '/home/ada/other',
    worktree: true,
    branch: 'deskhand/other',
  });
});

test('nothing begins in the directory itself where the worktree that is wanted cannot be', async () => {
  await want();
  type(directory(), '/home/ada/other');
  await soon(() => expect(plans.at(-1)?.cwd).toBe('/home/ada/other'));
  plans.at(-1)?.fail(refused);
  await soon(() => expect(document.querySelector('.own')?.textContent).toContain('no commit yet'));
  await start();
  await soon(() => expect(plans).toHaveLength(3)); // fetched again
  plans.at(-1)?.fail(refused);
  await soon(() =>
    expect(document.querySelector('.actions [role=alert]')?.textContent).toContain('no commit yet'),
  );
  expect(begun).not.toHaveBeenCalled();
  box()?.click();
  flushSync();
  await start();
  await soon(() => expect(begun).toHaveBeenCalledTimes(1));
  expect(begun.mock.calls[0]?.[0]).not.toHaveProperty('worktree');
});

test('an agent that needs a login leads to it', () => {
  const shy = agent({ id: 'shy', name: 'Shy', state: 'needs_login' });
  catalogue.book = { ...emptyBook, listed: [...catalogue.book.listed, shy] };
  show();
  const offers = [...document.querySelectorAll('button')].filter(
    (one) => one.textContent.trim() === 'Log in',
  );
  expect(offers.map((one) => one.getAttribute('aria-label'))).toEqual(['Log in to Shy']);
  offers[0]?.click();
  expect(logins.shown).toBe('shy');
});

test('a branch that was typed stays, whichever plan comes', async () => {
  await want();
  type(branch(), 'mine');
  type(directory(), '/home/ada/other');
  await planned('/home/ada/other');
  expect(branch()?.value).toBe('mine');
  await start();
  await soon(() => expect(begun).toHaveBeenCalledTimes(1));
  expect(begun.mock.calls[0]?.[0]).toMatchObject({ branch: 'mine' });
});

test('who has gone elsewhere while it was made stays there', async () => {
  let made: () => void = () => undefined;
  begun.mockImplementation(() => new Promise((done) => (made = () => done(session()))));
  await want();
  await start();
  await soon(() => expect(begun).toHaveBeenCalledTimes(1));
  navigation.view = { name: 'inbox' };
  made();
  await soon(() => expect(conversations.sessions.has('s1')).toBe(true));
  expect(navigation.view).toEqual({ name: 'inbox' });
});

test('who has gone elsewhere while it was made learns why it was not', async () => {
  let fail: (error: Error) => void = () => undefined;
  begun.mockImplementation(() => new Promise((_, no) => (fail = no)));
  const told = vi.spyOn(toasts, 'fail').mockReturnValue(undefined);
  await want();
  await start();
  await soon(() => expect(begun).toHaveBeenCalledTimes(1));
  navigation.view = { name: 'inbox' };
  fail(refused);
  await soon(() => expect(told).toHaveBeenCalledWith(refused));
});

test('the directory that is offered stays when somebody works elsewhere', () => {
  navigation.view = { name: 'new' };
  const there = (id: string, path: string, updatedAt: string) =>
    conversations.sessions.set(id, session({ id, workspace: { id, path }, cwd: path, updatedAt }));
  show();
  expect(directory()?.value).toBe('');
  there('a', '/home/ada/a', '2026-11-21T14:00:00.000Z'); // the list arrives
  flushSync();
  expect(directory()?.value).toBe('/home/ada/a');
  there('b', '/home/ada/b', '2026-11-21T15:00:00.000Z');
  flushSync();
  expect(directory()?.value).toBe('/home/ada/a');
});
