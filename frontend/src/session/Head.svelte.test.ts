import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { client, conversations, navigation } from '../state/state';
import { session } from '../test/records';
import { createRawSnippet } from 'svelte';
import Head from './Head.svelte';

let ended: (() => void) | undefined;
const children = createRawSnippet(() => ({ render: () => '<i></i>' }));

beforeEach(() => {
  vi.spyOn(client, 'call').mockImplementation(((route: string) =>
    Promise.resolve(
      route.endsWith('/branch') ? { name: 'fix/login' } : { files: 2, added: 1_200, removed: 3 },
    )) as never);
});
afterEach(() => {
  ended?.();
  document.body.replaceChildren();
  navigation.panel.close();
});

function show() {
  const component = mount(Head, {
    target: document.body,
    props: { session: session({ title: 'Fix login' }), newest: undefined, children },
  });
  ended = () => void unmount(component);
  flushSync();
}

const button = (name: string) =>
  [...document.querySelectorAll('button')].find(
    (one) => one.textContent.trim() === name || one.getAttribute('aria-label') === name,
  );

async function write(title: string, key: string) {
  button('Fix login')?.click();
  await vi.waitFor(() => {
    flushSync();
    expect(document.activeElement?.tagName).toBe('INPUT');
  });
  const field = document.activeElement as HTMLInputElement;
  expect(field.value).toBe('Fix login');
  field.value = title;
  field.dispatchEvent(new Event('input', { bubbles: true }));
  field.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  await vi.waitFor(() => {
    flushSync();
    expect(document.querySelector('input')).toBeNull();
  });
}

test('a press on the title renames, and Escape does not', async () => {
  const patch = vi.spyOn(conversations, 'patch').mockResolvedValue(true);
  show();
  await write('Mend the login', 'Escape');
  await write('Fix login', 'Enter');
  expect(patch).not.toHaveBeenCalled();
  await write('  Mend the login ', 'Enter');
  expect(patch).toHaveBeenCalledExactlyOnceWith('s1', { title: 'Mend the login' });
  expect(document.activeElement?.textContent).toBe('Fix login');
});

test('a title that is not stored is not lost', async () => {
  vi.spyOn(conversations, 'patch').mockResolvedValue(false);
  show();
  button('Fix login')?.click();
  await vi.waitFor(() => expect(document.querySelector('input')).not.toBeNull());
  const field = document.querySelector('input') as HTMLInputElement;
  field.value = 'Mend the login';
  field.dispatchEvent(new Event('input', { bubbles: true }));
  field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
  await vi.waitFor(() => {
    flushSync();
    expect(document.querySelector('input')?.value).toBe('Mend the login');
  });
});

test('the branch and the size of the changes are shown, which lead to the changes since the start', async () => {
  show();
  await vi.waitFor(() => {
    flushSync();
    expect(document.body.textContent).toContain('fix/login');
  });
  button('+1,200 −3 in 2 files')?.click();
  expect(navigation.panel.shown).toBe(true);
  expect(navigation.panel.ask).toEqual({ tab: 'changes', since: 'start' });
});
