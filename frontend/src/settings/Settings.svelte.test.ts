import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import type { Settings as Kept, SettingsPatch } from '../api/records';
import { client, navigation, preferences, toasts } from '../state/state';
import { appear } from '../ui/appearance';
import { kept } from '../ui/unsaved.svelte';
import Settings from './Settings.svelte';

// The settings on a fake server, which answers a change when the test says so.

const usual: Kept = {
  attachmentCallMiB: 100,
  attachmentFileMiB: 25,
  catalogueUrl: '',
  contrast: 'system',
  downloadHosts: '',
  followUp: 'queue',
  forges: '',
  localApi: true,
  memoryBudgetDefaultMiB: 4096,
  memoryBudgetMiB: 4096,
  memoryBudgetWorks: true,
  motion: 'system',
  textFont: '',
  codeFont: '',
  codeSize: 100,
  defaultAgent: '',
  newWorktree: false,
  editor: '',
  nativeDialogs: 'unfocused',
  notifications: true,
  sounds: false,
  path: '/home/ada/.config/deskhand/settings.json',
  snapshots: true,
  textSize: 100,
  theme: 'system',
};

let stored: Kept;
let asked: { patch: SettingsPatch; take: () => void; refuse: () => void }[];
let ended: (() => void) | undefined;

beforeEach(() => {
  localStorage.clear();
  stored = usual;
  asked = [];
  vi.spyOn(client, 'settings').mockImplementation(() => Promise.resolve(stored));
  vi.spyOn(client, 'patchSettings').mockImplementation(
    (patch) =>
      new Promise((take, fail) => {
        asked.push({
          patch,
          take: () => take((stored = { ...stored, ...patch })),
          refuse: () => fail(new ApiError('settings.unwritable', { path: '/s.json', detail: 'full' })),
        });
      }),
  );
  // Calls of other sections get no answer.
  const none = new Promise<never>(() => undefined);
  vi.spyOn(client, 'call').mockReturnValue(none);
});

afterEach(() => {
  ended?.();
  ended = undefined;
  kept.clear();
  vi.restoreAllMocks();
  preferences.settings = undefined;
  toasts.announcement = '';
  appear(usual);
  localStorage.clear();
  document.body.replaceChildren();
});

async function show(part: Partial<Kept> = {}) {
  ended?.();
  preferences.settings = stored = { ...usual, ...part };
  const screen = mount(Settings, { target: document.body });
  ended = () => void unmount(screen);
  await vi.waitFor(() => expect(client.settings).toHaveBeenCalled());
  flushSync();
}

function control(name: string): HTMLInputElement {
  const label = [...document.querySelectorAll('label')].find((one) => one.textContent.trim() === name);
  const found = label?.querySelector('input') ?? document.querySelector(`input[aria-label="${name}"]`);
  if (!(found instanceof HTMLInputElement)) throw new Error(`no ${name}`);
  return found;
}

function press(name: string) {
  control(name).focus();
  control(name).click();
  flushSync();
}

/** Waits until the n-th change has reached the server. */
async function comes(n: number, patch: SettingsPatch) {
  await vi.waitFor(() => expect(asked.map((one) => one.patch)[n]).toEqual(patch));
  expect(asked).toHaveLength(n + 1);
  return asked[n] as (typeof asked)[number];
}

test('a change that is made while another is saved waits for it, and is what is shown', async () => {
  await show();
  press('Light');
  press('Dark');
  (await comes(0, { theme: 'light' })).take();
  const second = await comes(1, { theme: 'dark' });
  flushSync();
  expect(control('Dark').checked).toBe(true);
  second.take();
  await vi.waitFor(() => expect(preferences.settings?.theme).toBe('dark'));
  flushSync();
  expect(control('Dark').checked).toBe(true);
  expect(document.activeElement).toBe(control('Dark'));
});

test('an amount that was typed is saved before what was pressed next', async () => {
  await show();
  const amount = control('Memory limit in MB');
  amount.value = '300';
  amount.dispatchEvent(new Event('input', { bubbles: true }));
  amount.dispatchEvent(new Event('change', { bubbles: true })); // as a press beside the field does
  press('No limit');
  (await comes(0, { memoryBudgetMiB: 300 })).take();
  (await comes(1, { memoryBudgetMiB: 0 })).take();
  await vi.waitFor(() => expect(preferences.settings?.memoryBudgetMiB).toBe(0));
  flushSync();
  expect(control('No limit').checked).toBe(true);
});

test('the address of a mirror is there again when the registry is asked again, after a restart too', async () => {
  const mirror = 'https://mirror.example/registry.json';
  await show({ catalogueUrl: mirror });
  press('Don’t check');
  (await comes(0, { catalogueUrl: 'off' })).take();
  await vi.waitFor(() => expect(preferences.settings?.catalogueUrl).toBe('off'));
  await show({ catalogueUrl: 'off' });
  navigation.show({ name: 'settings', at: 'agents' });
  await vi.waitFor(() => expect(control('Registry address').value).toBe(mirror));
  press('Check once a day, and tell me');
  (await comes(1, { catalogueUrl: mirror })).take();
  await vi.waitFor(() => expect(preferences.settings?.catalogueUrl).toBe(mirror));

  await show({ catalogueUrl: '' }); // the public registry, since then
  await show({ catalogueUrl: 'off' });
  press('Check once a day, and tell me');
  await comes(2, { catalogueUrl: '' });
});

test('a change that is refused goes back, holds up no other, and takes the focus from nothing', async () => {
  const notices = 'System notification while the window is hidden or another one has the focus';
  await show();
  press('Dark');
  press(notices);
  (await comes(0, { theme: 'dark' })).refuse();
  const second = await comes(1, { notifications: false });
  flushSync();
  expect(control('Dark').checked).toBe(false);
  second.refuse();
  await vi.waitFor(() => {
    flushSync();
    expect(control(notices).checked).toBe(true);
  });
  expect(document.activeElement).toBe(control(notices));
  expect([...document.querySelectorAll('[role=alert]')].map((one) => one.textContent).join()).toContain(
    '/s.json',
  );
});
