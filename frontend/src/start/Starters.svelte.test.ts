import { flushSync, mount, tick, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import { client } from '../state/state';
import { answering } from '../test/calls';
import { session } from '../test/records';
import Starters from './Starters.svelte';

let ended: (() => void) | undefined;

afterEach(() => {
  ended?.();
  vi.restoreAllMocks();
  document.body.replaceChildren();
});

/** Returns the suggestions for a directory; changed is git's answer. */
async function offered(repository: boolean, changed: number | ApiError) {
  const asked = answering(client, (_, address) => {
    if (address.endsWith('/starters')) return { files: true, repository };
    if (typeof changed === 'number') return { changed };
    throw changed;
  });
  const starters = mount(Starters, {
    target: document.body,
    props: { session: session(), choose: () => undefined },
  });
  ended = () => void unmount(starters);
  await vi.waitFor(() => {
    flushSync();
    expect(document.querySelector('ul')).not.toBeNull();
  });
  for (let turn = 0; turn < 10; turn++) await tick(); // git's answer comes after the list
  flushSync();
  const texts = [...document.querySelectorAll('li')].map((one) => one.textContent.trim());
  return { review: texts.includes('Review what is not committed yet'), asked: asked.mock.calls.length - 1 };
}

test('a repository in which everything is committed has nothing to review', async () => {
  expect(await offered(true, 0)).toEqual({ review: false, asked: 1 });
});

test('what is not committed can be reviewed', async () => {
  expect(await offered(true, 3)).toEqual({ review: true, asked: 1 });
});

test('so can what git does not tell of, as before the first commit', async () => {
  expect(await offered(true, new ApiError('worktree.no_commit'))).toEqual({ review: true, asked: 1 });
});

test('where there is no repository git is not asked', async () => {
  expect(await offered(false, 3)).toEqual({ review: false, asked: 0 });
});
