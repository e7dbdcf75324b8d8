import { flushSync, mount, tick, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import { client } from '../state/state';
import { answering } from '../test/calls';
import Starters from './Starters.svelte';

let ended: (() => void) | undefined;

afterEach(() => {
  ended?.();
  vi.restoreAllMocks();
  document.body.replaceChildren();
});

const texts = () => [...document.querySelectorAll('li')].map((one) => one.textContent.trim());

/** Shows the suggestions for a directory; changed is git's answer. It returns the number of calls but the first. */
async function show(
  starters: object,
  changed: number | ApiError,
  { cwd = '/home/ada/app', demo = false } = {},
) {
  const asked = answering(client, (_, address) => {
    if (address.startsWith('/client/starters')) return starters;
    if (typeof changed === 'number') return { changed };
    throw changed;
  });
  const shown = mount(Starters, { target: document.body, props: { cwd, demo, choose: () => undefined } });
  ended = () => void unmount(shown);
  await vi.waitFor(() => {
    flushSync();
    expect(document.querySelector('ul')).not.toBeNull();
  });
  for (let turn = 0; turn < 10; turn++) await tick(); // git's answer comes after the list
  flushSync();
  return asked.mock.calls.length - 1;
}

const review = 'Review what is not committed yet';

test('a repository in which everything is committed has nothing to review', async () => {
  expect(await show({ files: true, repository: true }, 0)).toBe(1);
  expect(texts()).not.toContain(review);
});

test('what is not committed can be reviewed', async () => {
  expect(await show({ files: true, repository: true }, 3)).toBe(1);
  expect(texts()).toContain(review);
});

test('so can what git does not tell of, as before the first commit', async () => {
  expect(await show({ files: true, repository: true }, new ApiError('worktree.no_commit'))).toBe(1);
  expect(texts()).toContain(review);
});

test('where there is no repository git is not asked', async () => {
  expect(await show({ files: true, repository: false }, 3)).toBe(0);
  expect(texts()).not.toContain(review);
});

const demo = [
  'Fix the failing test',
  'Plan how to print a receipt',
  'Ask me which currency to use',
  'Show the prices as a picture',
];

test('the demo agent has first messages of its own in its project, before it is made too', async () => {
  await show({ files: true, repository: true, sample: true }, 0, { demo: true });
  expect(texts()).toEqual(demo);
  ended?.();
  document.body.replaceChildren();
  await show({}, 0, { cwd: '', demo: true });
  expect(texts()).toEqual(demo);
});

test('no other agent has them there', async () => {
  await show({ files: true, sample: true, tests: 'sh test.sh' }, 0);
  expect(texts()).toEqual(['Explain what is in this directory', 'Run sh test.sh and fix what fails']);
});
