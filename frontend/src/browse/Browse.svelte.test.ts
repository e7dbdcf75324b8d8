import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ApiError } from '../api/errors';
import type { PanelAsk } from '../state/ask';
import { client } from '../state/state';
import { answering } from '../test/calls';
import { session } from '../test/records';
import Browse from './Browse.svelte';
import type { TreeEntry } from '../api/records';

// The Files tab on a fake server.

const root = '/home/ada/app';
const entry = (path: string, kind: TreeEntry['kind']): TreeEntry => ({
  name: path.split('/').at(-1) ?? '',
  path,
  kind,
  size: 1,
  modified: '2026-11-21T14:00:00.000Z',
});
const directories: Record<string, TreeEntry[]> = {
  '': [entry(root, 'directory')],
  [root]: [entry(`${root}/src`, 'directory'), entry(`${root}/pipe`, 'file')],
  [`${root}/src`]: [entry(`${root}/src/main.go`, 'file')],
};

let previews: string[];
let trees = 0;
let ended: (() => void) | undefined;

beforeEach(() => {
  previews = [];
  answering(client, (_, address) => {
    const { pathname, searchParams } = new URL(address, 'http://x');
    const of = searchParams.get('path') ?? '';
    const preview = pathname.endsWith('/preview');
    if (preview) previews.push(of);
    const items = preview ? undefined : directories[of];
    if (items) return { items };
    throw new ApiError('tree.invalid', { name: of }, 400); // neither a regular file nor a directory
  });
});

afterEach(() => {
  ended?.();
  document.body.replaceChildren();
});

async function show(ask: PanelAsk) {
  // The tree outlives the tab.
  const props = { session: session({ id: `tree${++trees}` }), ask };
  const tab = mount(Browse, { target: document.body, props });
  ended = () => void unmount(tab);
  for (let n = 0; n < 3; n++) {
    await new Promise((done) => setTimeout(done));
    flushSync();
  }
}

const rows = () => [...document.querySelectorAll('[role=treeitem]')].map((row) => row.textContent.trim());
const tree = () => document.querySelector('[role=tree]');

test('what is asked for as a directory is gone into, and not looked at as a file', async () => {
  await show({ tab: 'files', path: `${root}/src`, directory: true });
  expect(rows()).toEqual(['src', 'main.go', 'pipe']);
  expect(document.activeElement).toBe(tree());
  expect(previews).toEqual([]);
});

test('so is what turns out to be one, and what is neither says so', async () => {
  await show({ tab: 'files', path: `${root}/src/` });
  expect(previews).toEqual([`${root}/src`]);
  expect(rows()).toEqual(['src', 'main.go', 'pipe']);
  expect(document.querySelector('.file, [role=alert]')).toBeNull();
  ended?.();
  await show({ tab: 'files', path: `${root}/pipe` });
  expect(document.querySelector('.file [role=alert]')?.textContent).toContain('cannot be used like this');
});
