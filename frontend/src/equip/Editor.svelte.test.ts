import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { McpServer } from '../api/records';
import { ApiError } from '../api/errors';
import { client, navigation, toasts } from '../state/state';
import Mcp from './Mcp.svelte';
import { kept } from '../ui/unsaved.svelte';
import { mask } from './entry';

const server = (part: Partial<McpServer> = {}): McpServer => ({
  name: 'files',
  entry: { type: 'local', command: 'npx', args: ['-y', 'server'], env: { TOKEN: mask }, vendor: { x: 1 } },
  enabled: true,
  type: 'local',
  transport: 'stdio',
  approved: true,
  hash: 'a'.repeat(64),
  ...part,
});

let ended: (() => void) | undefined;
let listed: McpServer[];

async function open() {
  vi.spyOn(client, 'mcpServers').mockImplementation(() =>
    Promise.resolve({ items: listed, path: '/w/.sandbox-agent/config/mcp.json' }),
  );
  navigation.view = { name: 'settings', at: 'mcp', directory: '/w' };
  const component = mount(Mcp, { target: document.body });
  ended = () => void unmount(component);
  await settled();
}

async function settled() {
  for (let i = 0; i < 5; i++) await Promise.resolve();
  flushSync();
}

const button = (name: string, within: ParentNode = document) =>
  [...within.querySelectorAll<HTMLButtonElement>('button')].find(
    (one) => (one.getAttribute('aria-label') ?? one.textContent).trim() === name,
  );
const field = (label: string) => {
  const found = [...document.querySelectorAll('label')].find((one) => one.textContent.trim() === label);
  return document.getElementById(found?.htmlFor ?? '') as HTMLInputElement;
};
const json = () => field('JSON') as unknown as HTMLTextAreaElement;

function type(element: HTMLInputElement | HTMLTextAreaElement | null | undefined, value: string) {
  if (!element) throw new Error('no field');
  element.value = value;
  element.dispatchEvent(new InputEvent('input', { bubbles: true }));
  flushSync();
}

async function click(name: string, within?: ParentNode) {
  const found = button(name, within);
  if (!found) throw new Error(`no button ${name}`);
  found.click();
  await settled();
}

beforeEach(() => {
  listed = [server()];
});
afterEach(() => {
  ended?.();
  kept.clear();
  toasts.list = [];
  vi.restoreAllMocks();
  vi.useRealTimers();
  document.body.replaceChildren();
});

test('form and JSON are two views of one entry', async () => {
  await open();
  await click('Edit');
  type(field('Program'), 'uvx');
  expect(JSON.parse(json().value)).toMatchObject({
    command: 'uvx',
    args: ['-y', 'server'],
    vendor: { x: 1 },
  });
  type(json(), json().value.replace('"uvx"', '"bunx"'));
  expect(field('Program').value).toBe('bunx');
});

test('the form waits while the JSON is broken, and the line is named', async () => {
  await open();
  await click('Edit');
  type(json(), '{\n  "type": "local",\n  "command": npx\n}');
  expect(document.querySelector('fieldset')?.disabled).toBe(true);
  expect(document.querySelector('.faults')?.textContent.replace(/\s+/g, ' ').trim()).toBe(
    'Line 3 This does not belong here: npx',
  );
  const save = vi.spyOn(client, 'saveMcp');
  await click('Save');
  expect(save).not.toHaveBeenCalled();
});

test('a secret that was typed is hidden in the JSON until it is asked for; a stored one is never shown', async () => {
  await open();
  await click('Edit');
  expect(button('Show what was typed')).toBeUndefined();
  await click('Add variable');
  const [, name] = document.querySelectorAll<HTMLInputElement>('input[aria-label=Variable]');
  type(name, 'KEY');
  type(document.querySelector<HTMLInputElement>('input[aria-label="Value of KEY"]'), 's3cret');
  expect(JSON.parse(json().value)).toMatchObject({ env: { TOKEN: mask, KEY: mask } });
  await click('Show what was typed');
  expect(JSON.parse(json().value)).toMatchObject({ env: { TOKEN: mask, KEY: 's3cret' } });
  const save = vi.spyOn(client, 'saveMcp').mockResolvedValue(server());
  await click('Hide secrets');
  await click('Save');
  expect(save.mock.calls[0]?.[2]).toMatchObject({ env: { TOKEN: mask, KEY: 's3cret' } });
});

test('what the server refuses is shown at its line', async () => {
  await open();
  await click('Edit');
  vi.spyOn(client, 'saveMcp').mockRejectedValue(
    new ApiError('config.invalid', { detail: 'args[1]: NUL cannot be passed on' }, 400),
  );
  await click('Save');
  expect(document.querySelector('.faults')?.textContent.replace(/\s+/g, ' ').trim()).toBe(
    'Line 6 args[1]: NUL cannot be passed on',
  );
});

test('what nobody has approved is amber, cannot be tested or switched, and is approved by its hash', async () => {
  const executable = {
    kind: 'mcp' as const,
    name: 'files',
    hash: 'a'.repeat(64),
    detail: 'npx evil',
    before: 'npx good',
    approved: false,
  };
  listed = [server({ approved: false, executable })];
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  await open();
  expect(document.querySelector('.waits')?.textContent).toContain('Changed on disk');
  expect(button('Test')).toBeUndefined();
  expect(document.querySelector<HTMLButtonElement>('[role=switch]')?.disabled).toBe(true);
  await click('Review');
  expect(document.activeElement?.getAttribute('aria-label')).toBe('Review of files');
  const approve = vi.spyOn(client, 'approve').mockImplementation(() => {
    listed = [server()];
    return Promise.resolve();
  });
  vi.advanceTimersByTime(399);
  await click('Approve');
  expect(approve).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  flushSync();
  await click('Approve');
  expect(approve).toHaveBeenCalledWith('/w', ['a'.repeat(64)]);
  await settled();
  expect(document.querySelector('.waits')).toBeNull();
});

test('a removal can be taken back, since nothing was removed yet', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  const remove = vi.spyOn(client, 'removeMcp').mockImplementation(() => {
    listed = [];
    return Promise.resolve();
  });
  await open();
  await click('Delete');
  expect(document.querySelector('[data-server]')).toBeNull();
  toasts.list.at(-1)?.undo?.();
  flushSync();
  expect(document.querySelector('[data-server]')).not.toBeNull();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(remove).not.toHaveBeenCalled();
  await click('Delete');
  await vi.advanceTimersByTimeAsync(10_000);
  expect(remove).toHaveBeenCalledTimes(1);
});

test('nothing can be written in the editor or the import while it is saved', async () => {
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  const save = vi.spyOn(client, 'saveMcp').mockReturnValue(new Promise(() => undefined));
  await open();
  await click('Import…');
  const area = document.querySelector<HTMLTextAreaElement>('dialog textarea');
  type(area, '{"mcpServers": {"web": {"command": "npx"}}}');
  await click('Import 1 server');
  expect(area?.readOnly).toBe(true);
  await click('Cancel');

  let refuse: (why: Error) => void = () => undefined;
  save.mockReturnValue(new Promise((_, fail) => (refuse = fail)));
  await click('Add server');
  type(field('Name'), 'mine');
  type(field('Program'), 'npx');
  field('Program').focus();
  await click('Save');
  expect([field('Name').readOnly, json().readOnly]).toEqual([true, true]);
  expect(field('Program').matches(':disabled')).toBe(true);
  field('Program').blur(); // as a browser does with a field that is disabled
  refuse(new Error('refused'));
  await settled();
  expect(field('Program').matches(':disabled')).toBe(false);
  expect(document.activeElement).toBe(field('Program'));
});

test('who closes the page has not taken a removal back', async () => {
  const remove = vi.spyOn(client, 'removeMcp').mockResolvedValue();
  await open();
  await click('Delete');
  window.dispatchEvent(new Event('pagehide'));
  expect(remove).toHaveBeenCalledWith('/w', 'files', true);
});

test('the switch stores the entry and nothing else of it', async () => {
  await open();
  const save = vi.spyOn(client, 'saveMcp').mockResolvedValue(server({ enabled: false }));
  await click('Give files to agents');
  expect(save).toHaveBeenCalledWith('/w', 'files', { ...server().entry, enabled: false }, server().hash);
});

test('saving and testing tell what the editor was opened with, whatever the list has learnt since', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  await open();
  await click('Edit');
  listed = [server({ hash: 'b'.repeat(64), approved: false })];
  await vi.advanceTimersByTimeAsync(5_000);
  const run = vi.spyOn(client, 'testMcp').mockRejectedValue(new Error('refused'));
  const save = vi.spyOn(client, 'saveMcp').mockResolvedValue(server());
  await click('Test');
  expect(run.mock.calls[0]?.[3]).toBe('a'.repeat(64));
  await click('Save');
  expect(save.mock.calls[0]?.[3]).toBe('a'.repeat(64));
});

test('a new server replaces nothing that was shown; one that is there replaces what the list shows', async () => {
  const save = vi.spyOn(client, 'saveMcp').mockResolvedValue(server());
  await open();
  await click('Add server');
  type(field('Name'), 'new');
  type(field('Program'), 'npx');
  await click('Save');
  expect(save.mock.calls[0]?.[3]).toBeUndefined();
  await click('Delete'); // the removal can still be undone, so the entry is still stored
  await click('Add server');
  type(field('Name'), 'files');
  type(field('Program'), 'npx');
  await click('Save');
  expect(save.mock.calls[1]?.[3]).toBe('a'.repeat(64));
});

test('what is written and not saved is there again when the screen is, with what it is about', async () => {
  await open();
  await click('Edit');
  type(field('Program'), 'uvx');
  await click('Add variable');
  type(document.querySelectorAll<HTMLInputElement>('input[aria-label=Variable]')[1], 'KEY');
  type(document.querySelector<HTMLInputElement>('input[aria-label="Value of KEY"]'), 's3cret');
  await click('Show what was typed');
  ended?.();
  listed = [server({ hash: 'b'.repeat(64) })];
  await open();
  expect(document.querySelector('h3')?.textContent).toContain('files');
  expect(field('Program').value).toBe('uvx');
  expect(json().value).not.toContain('s3cret');
  expect(JSON.stringify({ ...localStorage })).not.toContain('s3cret');
  const save = vi.spyOn(client, 'saveMcp').mockResolvedValue(server());
  await click('Save');
  expect(save.mock.calls[0]?.[2]).toMatchObject({ command: 'uvx', env: { TOKEN: mask, KEY: 's3cret' } });
  expect(save.mock.calls[0]?.[3]).toBe('a'.repeat(64));
  ended?.();
  await open();
  expect(button('Add server')).toBeDefined();
});

test('JSON that cannot be read comes back as it is', async () => {
  await open();
  await click('Add server');
  type(field('Name'), 'mine');
  type(json(), '{\n  "type": "local",\n');
  ended?.();
  await open();
  expect(field('Name').value).toBe('mine');
  expect(json().value).toBe('{\n  "type": "local",\n');
  expect(document.querySelector('fieldset')?.disabled).toBe(true);
});

test('Cancel takes what was written away, and Undo brings it back', async () => {
  await open();
  await click('Add server');
  await click('Cancel');
  expect(toasts.list.some((one) => one.text === 'Your text was discarded')).toBe(false);
  await click('Add server');
  type(field('Name'), 'mine');
  await click('Cancel');
  expect(button('Add server')).toBeDefined();
  const before = navigation.view;
  toasts.list.at(-1)?.undo?.();
  expect(navigation.view).not.toBe(before); // a new view object mounts the screen again
  ended?.();
  await open();
  expect(field('Name').value).toBe('mine');
});

test('what was pasted for an import is there again when the import is', async () => {
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  await open();
  await click('Import…');
  const area = () => document.querySelector<HTMLTextAreaElement>('dialog textarea');
  type(area(), '{"mcpServers": {"web": {"command": "npx"}}}');
  ended?.();
  await open();
  await click('Import…');
  expect(area()?.value).toContain('"web"');
  expect(button('Import 1 server')?.disabled).toBe(false);
  await click('Cancel');
  toasts.undo();
  flushSync();
  expect(area()?.value).toContain('"web"');
  await click('Cancel');
  await click('Import…');
  expect(area()?.value).toBe('');
});

test('a letter too many in a name, or in a value, costs no stored secret', async () => {
  await open();
  await click('Edit');
  const name = () => document.querySelector<HTMLInputElement>('input[aria-label=Variable]');
  const value = (of: string) =>
    document.querySelector<HTMLInputElement>(`input[aria-label="Value of ${of}"]`);
  type(name(), 'TOKENX');
  expect(value('TOKENX')?.getAttribute('aria-invalid')).toBe('true');
  const save = vi.spyOn(client, 'saveMcp').mockResolvedValue(server());
  await click('Save');
  expect(save).not.toHaveBeenCalled();
  expect(document.querySelector('.faults')?.textContent).toContain('A hidden value stays with its name.');
  type(name(), 'TOKEN');
  expect(value('TOKEN')?.placeholder).toBe('Stored, not shown');
  type(value('TOKEN'), 'x');
  type(value('TOKEN'), '');
  await click('Save');
  expect(save.mock.calls[0]?.[2]).toMatchObject({ env: { TOKEN: mask } });
});

test('a client secret that was begun and taken back is the stored one', async () => {
  listed = [
    server({
      type: 'remote',
      transport: 'http',
      entry: { type: 'remote', url: 'https://a', oauth: { clientId: 'c', clientSecret: mask } },
    }),
  ];
  await open();
  await click('Edit');
  type(field('Client secret'), 'x');
  type(field('Client secret'), '');
  expect(JSON.parse(json().value)).toMatchObject({ oauth: { clientSecret: mask } });
  const save = vi.spyOn(client, 'saveMcp').mockResolvedValue(server());
  await click('Save');
  expect(save.mock.calls[0]?.[2]).toMatchObject({ oauth: { clientId: 'c', clientSecret: mask } });
});

test('a value that was typed over a stored one and is taken back after another screen is the stored one', async () => {
  await open();
  await click('Edit');
  const value = () => document.querySelector<HTMLInputElement>('input[aria-label="Value of TOKEN"]');
  type(value(), 'other');
  ended?.();
  await open();
  type(value(), '');
  const save = vi.spyOn(client, 'saveMcp').mockResolvedValue(server());
  await click('Save');
  expect(save.mock.calls[0]?.[2]).toMatchObject({ env: { TOKEN: mask } });
});
