import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { client, toasts } from '../state/state';
import '../strings/browse';
import { answering } from '../test/calls';
import { session } from '../test/records';
import type { TreePreview } from '../api/records';
import File from './File.svelte';
import { draftOf, dropDraft, keepDraft, storedDraft } from './text';

const path = '/home/ada/app/a.txt';
const look = vi.fn<() => Promise<TreePreview>>();
let ended: (() => void) | undefined;

const preview = (version: string, text: string): TreePreview => ({
  path,
  name: 'a.txt',
  version,
  text,
  kind: 'text',
  whole: true,
  mimeType: 'text/plain',
  size: text.length,
  modified: '2026-11-21T14:00:00.000Z',
});

beforeEach(() => {
  localStorage.clear();
  look.mockReset().mockResolvedValue(preview('v1', 'old'));
  const written = { version: 'v2', size: 4, modified: '2026-11-21T15:00:00.000Z' };
  answering(client, (method) => (method === 'PUT' ? written : look()));
});

afterEach(() => {
  ended?.();
  document.body.replaceChildren();
  vi.restoreAllMocks();
  dropDraft('s1', path);
  localStorage.clear();
  toasts.list = [];
  vi.unstubAllGlobals();
});

async function settle() {
  flushSync();
  await new Promise((done) => setTimeout(done));
  flushSync();
}

async function show() {
  const props = $state({
    session: session(),
    shown: { path },
    looks: 0,
    mention: () => undefined,
    menu: () => undefined,
    enter: () => Promise.resolve(false),
    back: () => undefined,
  });
  const component = mount(File, { target: document.body, props });
  ended = () => void unmount(component);
  await settle();
  return props;
}

function button(name: string): HTMLButtonElement {
  const found = [...document.querySelectorAll('button')].find(
    (one) => (one.getAttribute('aria-label') ?? one.textContent).trim() === name,
  );
  if (!found) throw new Error(`no button ${name} in ${document.body.textContent}`);
  return found;
}

function type(text: string) {
  const field = document.querySelector('textarea') as HTMLTextAreaElement;
  field.value = text;
  field.dispatchEvent(new Event('input', { bubbles: true }));
  flushSync();
}

async function write(text: string) {
  button('Edit').click();
  await settle();
  type(text);
}

/** Makes every storage full. */
function fill() {
  vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
    throw new DOMException('full', 'QuotaExceededError');
  });
}

const written = () => document.querySelector('textarea')?.value;

test.each(['Save', 'Cancel'])(
  'what another tab has kept of the file outlasts “%s” in this one',
  async (way) => {
    await show();
    await write('mine');
    expect(draftOf('s1', path)?.text).toBe('mine');
    keepDraft('s1', path, { version: 'v1', text: 'of another tab', mark: '', end: '\n' });
    button(way).click();
    await settle();
    expect(document.querySelector('textarea')).toBeNull();
    expect(draftOf('s1', path)?.text).toBe('of another tab');
  },
);

test('what is kept is dropped with what was saved, also where there was no room for the last of it', async () => {
  await show();
  await write('min');
  fill();
  type('mine');
  expect(storedDraft('s1', path)?.text).toBe('min');
  button('Save').click();
  await settle();
  expect(draftOf('s1', path)).toBeUndefined();
});

test('a look that was under way when the file was saved does not show what it was before', async () => {
  const props = await show();
  await write('mine');
  let answer!: (found: TreePreview) => void;
  look.mockReturnValueOnce(new Promise((done) => (answer = done)));
  props.looks++;
  await settle();
  button('Save').click();
  await settle();
  answer(preview('v1', 'old'));
  await settle();
  expect(document.querySelector('textarea')).toBeNull();
  expect(document.body.textContent).toContain('mine');
  expect(document.body.textContent).not.toContain('old');
});

test('what there was no room for is there again after another file was looked at, and nothing older ever', async () => {
  await show();
  await write('min');
  fill();
  type('mine');
  ended?.();
  await show();
  expect(written()).toBe('mine');
  expect(document.body.textContent).toContain('There is no room to keep your text');
  button('Cancel').click();
  await settle();
  expect(draftOf('s1', path)).toBeUndefined();
});

test('“Edit” goes on with what another tab has kept meanwhile', async () => {
  await show();
  keepDraft('s1', path, { version: 'v1', text: 'of another tab', mark: '', end: '\n' });
  button('Edit').click();
  await settle();
  expect(written()).toBe('of another tab');
  expect(document.body.textContent).toContain('Your earlier text is back');
});

test('Undo of “Cancel” takes the place of nothing newer', async () => {
  await show();
  await write('mine');
  button('Cancel').click();
  await settle();
  button('Edit').click(); // reads the file again
  await settle();
  toasts.list.at(-1)?.undo?.();
  flushSync();
  expect(written()).toBe('mine');
  button('Cancel').click();
  await settle();
  await write('newer');
  toasts.list.at(-1)?.undo?.();
  flushSync();
  expect(written()).toBe('newer');
  button('Cancel').click();
  await settle();
  toasts.list.at(-1)?.undo?.();
  flushSync();
  expect(written()).toBe('newer');
});
