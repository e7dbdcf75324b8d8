import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import { client, lifecycle, toasts } from '../state/state';
import { answering } from '../test/calls';
import { session } from '../test/records';
import RemoveWorktree from './RemoveWorktree.svelte';

afterEach(() => {
  vi.restoreAllMocks();
  document.body.replaceChildren();
});

const would = {
  branch: 'b',
  branchStays: true,
  commits: 0,
  missing: false,
  changed: [],
  changedTotal: 0,
  ignored: [],
  ignoredTotal: 0,
  ignoredBytes: 0,
  others: [],
};

/** Answers the calls; removed is the answer to the removal. */
function server(removed: unknown, worktree?: { left: string }) {
  answering(client, (method, address) => {
    if (method === 'DELETE') return removed;
    return address.endsWith('/worktree') ? would : session({ worktree: worktree as never });
  });
}

const button = (name: string) =>
  [...document.querySelectorAll('button')].find((one) => one.textContent.trim() === name);

/** Opens the dialog and presses the button that removes the worktree. */
async function removing(deleting: boolean, run: string) {
  const close = vi.fn();
  const dialog = mount(RemoveWorktree, {
    target: document.body,
    props: { session: session(), deleting, close, restore: vi.fn() },
  });
  await vi.waitFor(() => expect(button(run)?.disabled).toBe(false));
  button(run)?.focus();
  button(run)?.click();
  flushSync();
  return { close, dialog };
}

test('who does something else while the worktree is removed learns what failed', async () => {
  let fail: (error: Error) => void = () => undefined;
  server(new Promise((_, no) => (fail = no)));
  const { close, dialog } = await removing(false, 'Remove it');
  expect(document.querySelector('[role=status]')?.textContent).toBe('Removing the worktree…');
  button('Close')?.click();
  flushSync();
  expect(document.querySelector('dialog')).toBeNull();
  expect(close).not.toHaveBeenCalled(); // the removal goes on
  fail(new ApiError('worktree.disk_full'));
  await vi.waitFor(() =>
    expect(document.querySelector('[role=alert]')?.textContent).toContain('disk is full'),
  );
  button('Cancel')?.click();
  expect(close).toHaveBeenCalledTimes(1);
  void unmount(dialog);
});

test('a worktree that is removed while the person does something else is told of', async () => {
  let done: (nothing: undefined) => void = () => undefined;
  server(new Promise((yes) => (done = yes)));
  const told = vi.spyOn(toasts, 'show').mockReturnValue(undefined);
  const { close, dialog } = await removing(false, 'Remove it');
  document
    .querySelector('dialog')
    ?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, cancelable: true }));
  flushSync();
  expect(document.querySelector('dialog')).toBeNull();
  done(undefined);
  await vi.waitFor(() => expect(told).toHaveBeenCalledTimes(1));
  expect(close).toHaveBeenCalledTimes(1);
  void unmount(dialog);
});

test('where what could not be deleted lies is told before the dialog goes, and the conversation with it', async () => {
  const left = '/home/ada/app.worktrees/.left-fix';
  server(undefined, { left });
  const deleted = vi.spyOn(lifecycle, 'delete').mockResolvedValue(undefined);
  const { close, dialog } = await removing(true, 'Remove it and delete');
  await vi.waitFor(() => expect(document.querySelector('dialog')?.textContent).toContain(left));
  expect(close).not.toHaveBeenCalled();
  expect(button('Remove it and delete')).toBeUndefined();
  await vi.waitFor(() => expect(document.activeElement).toBe(button('Close')));
  button('Close')?.click();
  expect(close).toHaveBeenCalledTimes(1);
  expect(deleted).toHaveBeenCalledTimes(1);
  void unmount(dialog);
});
