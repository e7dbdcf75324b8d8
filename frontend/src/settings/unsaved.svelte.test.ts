import { flushSync, mount, unmount, type Component } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import RuleEditor from '../rules/RuleEditor.svelte';
import type { preferences } from '../state/state';
import { client, remotes, rules, toasts } from '../state/state';
import '../strings/settings';
import { kept } from '../ui/unsaved.svelte';
import Agents from './Agents.svelte';
import CustomAgent from './CustomAgent.svelte';
import DiscordToken from './DiscordToken.svelte';
import DiscordUsers from './DiscordUsers.svelte';
import Files from './Files.svelte';
import Permissions from './Permissions.svelte';
import Places from './Places.svelte';
import Registry from './Registry.svelte';
import Tokens from './Tokens.svelte';

// Forms whose screen is left before their text is saved.

let ended: (() => void) | undefined;

beforeEach(() => {
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  const none = new Promise<never>(() => undefined);
  vi.spyOn(client, 'call').mockReturnValue(none);
});

afterEach(() => {
  ended?.();
  ended = undefined;
  kept.clear();
  toasts.list = [];
  remotes.list = [];
  vi.restoreAllMocks();
  document.body.replaceChildren();
});

async function show<Props extends Record<string, unknown>>(component: Component<Props>, props: Props) {
  ended?.();
  const now = mount(component, { target: document.body, props });
  ended = () => void unmount(now);
  await Promise.resolve();
  flushSync();
}

const fields = () => [
  ...document.querySelectorAll<HTMLInputElement>('input:not([type=checkbox], [type=radio])'),
];

function type(at: number, value: string) {
  const element = fields()[at];
  if (!element) throw new Error('no field');
  element.value = value;
  element.dispatchEvent(new InputEvent('input', { bubbles: true }));
  flushSync();
}

function press(name: string) {
  const found = [...document.querySelectorAll<HTMLButtonElement>('button')].find(
    (one) => (one.getAttribute('aria-label') ?? one.textContent).trim() === name,
  );
  if (!found) throw new Error(`no button ${name}`);
  found.click();
  flushSync();
}

const written = () => fields().map((one) => one.value);

test('a place: the form is open again with all of it, and no other takes its room', async () => {
  const site = { id: 's', name: 'box', url: 'https://box', state: 'ready' as const };
  remotes.list = [site as (typeof remotes.list)[number]];
  await show(Places, {});
  press('Edit box');
  press('Cancel');
  press('Add a place');
  type(0, 'mine');
  type(1, 'https://there');
  type(2, 's3cret');
  expect(document.querySelector<HTMLButtonElement>('[aria-label="Edit box"]')?.disabled).toBe(true);
  await show(Places, {});
  expect(written()).toEqual(['mine', 'https://there', 's3cret']);
  expect(JSON.stringify([{ ...localStorage }, { ...sessionStorage }])).not.toContain('s3cret');
  press('Cancel');
  await show(Places, {});
  expect(written()).toEqual([]);
});

test('a token', async () => {
  await show(Tokens, {});
  press('New token');
  type(0, 'phone');
  await show(Tokens, {});
  expect(written()).toEqual(['phone']);
});

test('where files may come from, and the list of agents, until the server has them', async () => {
  const settings = {
    downloadHosts: '',
    attachmentFileMiB: 25,
    attachmentCallMiB: 100,
    catalogueUrl: '',
  } as unknown as NonNullable<typeof preferences.settings>;
  const change = vi.fn(() => Promise.resolve(true));
  await show(Files, { settings, change });
  type(0, 'example.org');
  await show(Files, { settings, change });
  expect(written()[0]).toBe('example.org');
  press('Save');
  await vi.waitFor(() => expect(kept.size).toBe(0));
  await show(Registry, { settings, change });
  type(0, 'https://list');
  await show(Registry, { settings, change });
  expect(written()).toEqual(['https://list']);
});

test('an agent, which is given up by closing its form', async () => {
  const close = vi.fn();
  await show(CustomAgent, { agent: undefined, close });
  type(0, 'My agent');
  await show(CustomAgent, { agent: undefined, close });
  expect(written().slice(0, 2)).toEqual(['My agent', 'my-agent']);
  press('Close without saving');
  expect(close).toHaveBeenCalled();
  await show(CustomAgent, { agent: undefined, close });
  expect(written()[0]).toBe('');
});

test('an agent and a rule that were given up are there again, with their form, when that is undone', async () => {
  await show(Agents, {
    settings: { catalogueUrl: '' } as never,
    change: () => Promise.resolve(true),
    focused: false,
  });
  press('Add an agent');
  press('Close without saving');
  expect(toasts.list).toEqual([]); // nothing was written
  press('Add an agent');
  type(1, 'My agent'); // the first field is the address of the registry
  press('Close without saving');
  expect(written()).toHaveLength(1);
  toasts.undo();
  flushSync();
  expect(written().slice(1, 3)).toEqual(['My agent', 'my-agent']);
  kept.clear();

  rules.loaded = true;
  await show(Permissions, {});
  press('New rule');
  await vi.waitFor(() => expect(document.querySelector('dialog')).not.toBeNull());
  type(1, 'ls -l *');
  press('Cancel');
  expect(document.querySelector('dialog')).toBeNull();
  toasts.undo();
  await vi.waitFor(() => expect(written()[1]).toBe('ls -l *'));
});

test('an agent whose entry is asked for again', async () => {
  const agent = { id: 'mine', name: 'Mine' } as unknown as Parameters<typeof client.saveAgent>[0] & never;
  vi.spyOn(client, 'agentDefinition').mockResolvedValue({ name: 'Mine', command: 'c' } as never);
  const close = vi.fn();
  await show(CustomAgent, { agent, close });
  await vi.waitFor(() => expect(fields().length).toBeGreaterThan(2));
  type(2, 'other');
  await show(CustomAgent, { agent, close });
  await vi.waitFor(() => expect(fields().length).toBeGreaterThan(2));
  flushSync();
  expect(written()[2]).toBe('other');
});

test('a rule, each its own', async () => {
  const props = (form: string) => ({
    form,
    title: 'Rule',
    draft: {
      effect: 'allow' as const,
      kind: 'execute' as const,
      pattern: 'ls',
      scope: 'everywhere' as const,
      session: '',
      directory: { path: '', place: '' },
      expires: 'never' as const,
      at: '',
      note: '',
    },
    saves: 'Save',
    save: () => Promise.resolve(),
    close: () => undefined,
  });
  await show(RuleEditor, props('rule a'));
  type(0, 'ls -l *');
  await show(RuleEditor, props('rule b'));
  expect(written()[0]).toBe('ls');
  await show(RuleEditor, props('rule a'));
  expect(written()[0]).toBe('ls -l *');
});

test('no field can be written in while its text is saved', async () => {
  const never = () => new Promise<never>(() => undefined);
  const locked = () => fields().map((one) => one.readOnly || one.disabled);
  const settings = {
    downloadHosts: '',
    attachmentFileMiB: 25,
    attachmentCallMiB: 100,
    catalogueUrl: '',
  } as unknown as NonNullable<typeof preferences.settings>;

  await show(Files, { settings, change: never });
  type(0, 'example.org');
  expect(locked()).toEqual([false, false, false]);
  press('Save');
  expect(locked()).toEqual([true, true, true]);

  await show(Registry, { settings, change: never });
  type(0, 'https://list');
  press('Save');
  expect(locked()).toEqual([true]);

  await show(DiscordToken, { of: {} as never, busy: true, save: never });
  expect(locked()).toEqual([true, true, true]);

  await show(Places, {});
  press('Add a place');
  type(0, 'mine');
  type(1, 'https://there');
  vi.spyOn(client, 'addPlace').mockImplementation(never);
  press('Add a place');
  expect(locked()).toEqual([true, true, true]);

  await show(CustomAgent, { agent: undefined, close: vi.fn() });
  type(0, 'My agent');
  type(2, 'run');
  vi.spyOn(client, 'saveAgent').mockImplementation(never);
  press('Save');
  await vi.waitFor(() => expect(locked()).toEqual([true, true, true, true]));
});

test('an id that is typed while another Discord user is added stays', async () => {
  let stored: (state: never) => void = () => undefined;
  const change = () => new Promise<never>((done) => (stored = done));
  await show(DiscordUsers, { of: { users: [] } as never, busy: false, change });
  type(0, '1');
  press('Add');
  type(0, '2');
  stored({ users: [{ id: '1' }] } as never);
  await vi.waitFor(() => expect(document.querySelector('li')).not.toBeNull());
  expect(written()).toEqual(['2']);
});
