import { flushSync, mount, unmount } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import type { Turn } from '../api/records';
import { highlighter } from '../markdown/highlight';
import type { PanelAsk } from '../state/ask';
import type { SessionView } from '../state/session.svelte';
import { client, conversations, toasts } from '../state/state';
import { answering } from '../test/calls';
import { session, turn } from '../test/records';
import type { ChangedFile, Changes as List, FileDiff, Hunk, Restored } from '../api/records';
import Actions from './Actions.svelte';
import Changes from './Changes.svelte';
import { forgetNotes, type Comment } from './comments';
import { forgetReviews, reviewOf } from './review.svelte';
import { askUndo } from './undo';

// The tab on a fake server. The browser tests show that files are restored.

const at = (minute: number) => `2026-11-22T14:${String(minute).padStart(2, '0')}:00.000Z`;

function hunk(id: string, start: number, part: Partial<Hunk> = {}): Hunk {
  return {
    id,
    oldStart: start,
    oldLines: 2,
    newStart: start,
    newLines: 2,
    heading: 'func main',
    lines: [
      { op: ' ', text: 'same' },
      { op: '-', text: `old ${id}` },
      { op: '+', text: `new ${id}` },
    ],
    kept: false,
    revertable: true,
    ...part,
  };
}

function file(path: string, part: Partial<ChangedFile> = {}): ChangedFile {
  return {
    path,
    kind: 'modified',
    added: 2,
    removed: 2,
    binary: false,
    large: false,
    size: 100,
    kept: 0,
    hunks: 2,
    now: 'same',
    ...part,
  };
}

const diffOf = (path: string, part: Partial<FileDiff> = {}): FileDiff => ({
  path,
  kind: 'modified',
  binary: false,
  large: false,
  now: 'same',
  hunks: [hunk(`${path}-1`, 10), hunk(`${path}-2`, 40)],
  ...part,
});

const turns = [
  { id: 't1', at: at(1), files: 1, added: 1, removed: 0, undone: false },
  { id: 't2', at: at(2), files: 2, added: 4, removed: 4, undone: false },
];

let list: List;
let diffs: Record<string, FileDiff>;
let restored: Restored;
let refuse: ApiError | undefined;
let refuseReads: ApiError | undefined;
/** Answers to POST requests wait for this promise. */
let held: Promise<void> | undefined;
/** Answers to GET requests wait for this promise, with the state at the time of the request. */
let heldReads: Promise<void> | undefined;
/** Calls that mark hunks as kept are answered after this. */
let heldMarks: Promise<void> | undefined;
let signals: AbortSignal[];
let calls: string[];
let bodies: unknown[];
let view: { items: unknown[]; turns: SvelteMap<string, Turn> };
let ended: (() => void) | undefined;

function answer(path: string, body: unknown): unknown {
  const { pathname, searchParams } = new URL(path, 'http://x');
  const what = pathname.replace('/client/sessions/s1/changes', '');
  calls.push(
    `${what || '/'} ${[...searchParams].map(([name, value]) => `${name}=${value}`).join(' ')}`.trim(),
  );
  if (body !== undefined) bodies.push(body);
  if (refuse && body !== undefined) throw refuse;
  if (refuseReads && body === undefined) throw refuseReads;
  if (what === '/keep') marked(body as Marks);
  if (what === '') return list;
  if (what === '/file') return diffs[searchParams.get('path') ?? ''];
  return restored;
}

interface Marks {
  hunks: { path: string; hunk: string }[];
  kept: boolean;
}

function marked({ hunks, kept }: Marks) {
  for (const { path, hunk: id } of hunks) {
    const diff = diffs[path];
    if (diff)
      diffs[path] = {
        ...diff,
        hunks: diff.hunks.map((it) => (id === '' || it.id === id ? { ...it, kept } : it)),
      };
  }
}

beforeEach(() => {
  localStorage.clear();
  forgetReviews();
  forgetNotes();
  list = { state: 'ready', turn: 't2', turns, files: [file('src/a.ts'), file('readme.md', { hunks: 1 })] };
  diffs = { 'src/a.ts': diffOf('src/a.ts'), 'readme.md': diffOf('readme.md', { hunks: [hunk('r', 5)] }) };
  restored = { id: 'back1', files: [{ path: 'src/a.ts', outcome: 'restored' }] };
  refuse = undefined;
  refuseReads = undefined;
  held = undefined;
  heldReads = heldMarks = undefined;
  calls = [];
  signals = [];
  bodies = [];
  view = { items: [], turns: new SvelteMap() };
  vi.spyOn(highlighter, 'paint').mockResolvedValue(undefined);
  answering(client, (method, address, { body, signal }) => {
    if (signal) signals.push(signal);
    const found = answer(address, body);
    if (address.endsWith('/keep')) return heldMarks?.then(() => found) ?? found;
    return (method === 'GET' ? heldReads : held)?.then(() => found) ?? found;
  });
  conversations.sessions.set('s1', session());
});

afterEach(() => {
  ended?.();
  ended = undefined;
  conversations.sessions.clear();
  toasts.list = [];
  document.body.replaceChildren();
});

function later() {
  let resolve!: () => void;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

async function settle() {
  for (let n = 0; n < 12; n++) {
    flushSync();
    await Promise.resolve();
  }
  await new Promise((done) => setTimeout(done));
  flushSync();
}

async function show(ask?: PanelAsk) {
  const tab = mount(Changes, {
    target: document.body,
    props: { session: session(), view: view as unknown as SessionView, ask },
  });
  ended = () => void unmount(tab);
  await settle();
}

const one = <E extends Element = HTMLElement>(selector: string) => {
  const found = document.querySelector<E>(selector);
  if (!found) throw new Error(`no ${selector} in ${document.body.textContent}`);
  return found;
};
const text = (selector = 'body') => one(selector).textContent.replace(/\s+/g, ' ').trim();
const item = (name: string) => one(`[role=treeitem][data-key="${name}"]`);

async function key(name: string, target: Element = document.activeElement ?? document.body, repeat = false) {
  const event = new KeyboardEvent('keydown', { key: name, repeat, bubbles: true, cancelable: true });
  (target === document.body ? one('.changes') : target).dispatchEvent(event);
  await settle();
  return event.defaultPrevented;
}

const spot = () => {
  const { path, spot: now, hunks } = reviewOf('s1');
  return `${path} ${hunks[now.hunk]?.id} ${now.row}`;
};

test('the newest changes, gone through by keys', async () => {
  await show();
  expect(calls).toEqual(['/', '/file turn=t2 path=src/a.ts']);
  expect(text('.sum')).toBe('2 files, +4 −4');
  expect(item('src/a.ts').getAttribute('aria-label')).toBe('a.ts +2 −2, modified');
  expect(spot()).toBe('src/a.ts src/a.ts-1 1');
  await key(']');
  expect(spot()).toBe('src/a.ts src/a.ts-2 1');
  expect(document.activeElement?.getAttribute('data-row')).toBe('1');
  await key(']');
  expect(spot()).toBe('readme.md r 1');
  await key(']');
  expect(toasts.announcement).toBe('This is the last change.');
  await key('[');
  expect(spot()).toBe('src/a.ts src/a.ts-2 1');
  await key('ArrowDown');
  await key('ArrowUp');
  await key('ArrowUp');
  await key('ArrowUp'); // out of the hunk, to the end of the hunk before
  expect(spot()).toBe('src/a.ts src/a.ts-1 2');
  await key('ArrowLeft');
  expect(document.activeElement).toBe(item('src/a.ts'));
});

test('a hunk is kept, and one goes on to the next; keys count nowhere where something is typed', async () => {
  await show();
  await key('y');
  expect(bodies).toEqual([{ turn: 't2', hunks: [{ path: 'src/a.ts', hunk: 'src/a.ts-1' }], kept: true }]);
  expect(spot()).toBe('src/a.ts src/a.ts-2 1');
  expect(one('[data-hunk="0"] [data-fold]').getAttribute('aria-expanded')).toBe('false');
  expect(text('.sum')).toBe('2 files, +4 −4 · 1 of 3 changes kept');
  await key('y');
  expect(spot()).toBe('readme.md r 1');
  await key('y');
  expect(item('readme.md').getAttribute('aria-label')).toContain('Kept');
  await key('[');
  await key('y'); // a second press removes the mark
  expect(bodies.at(-1)).toEqual({
    turn: 't2',
    hunks: [{ path: 'src/a.ts', hunk: 'src/a.ts-2' }],
    kept: false,
  });

  const field = document.body.appendChild(document.createElement('input'));
  one('.changes').append(field);
  const before = bodies.length;
  expect(await key('n', field)).toBe(false);
  expect(bodies).toHaveLength(before);
});

test('what could not be kept is as it was', async () => {
  await show();
  refuse = new ApiError('changes.unknown_hunk', { path: 'src/a.ts' });
  await key('y');
  expect(text('.sum')).toBe('2 files, +4 −4');
  expect(document.querySelector('[data-fold]')).toBeNull();
  expect(toasts.list.at(-1)?.text).toBe(
    'This change to src/a.ts is no longer there. The view has been refreshed.',
  );
});

test('what was asked for before something was kept does not say that it was not', async () => {
  await show();
  const { promise, resolve } = later();
  heldReads = promise;
  window.dispatchEvent(new Event('focus')); // reads again
  await settle();
  list = { ...list, files: [file('src/a.ts', { kept: 1 }), file('readme.md', { hunks: 1 })] };
  await key('y');
  expect(text('.sum')).toContain('1 of 3 changes kept');
  heldReads = undefined;
  resolve();
  await settle();
  expect(text('.sum')).toContain('1 of 3 changes kept');
  expect(text('[data-hunk="0"]')).toContain('Kept');
});

test('what could not be taken back is not passed by', async () => {
  await show();
  refuse = new ApiError('changes.gone', {}, 409);
  await key('n');
  expect(spot()).toBe('src/a.ts src/a.ts-1 1');
  refuse = undefined;
  const { promise, resolve } = later();
  held = promise;
  await key('n');
  await key('n'); // while the first is under way
  expect(spot()).toBe('src/a.ts src/a.ts-1 1');
  resolve();
  await settle();
  expect(spot()).toBe('src/a.ts src/a.ts-2 1');
});

test('a key that is held down keeps or takes back once, and so does one that is pressed again too soon', async () => {
  await show();
  const hold = (name: string, target?: Element) => key(name, target, true);
  for (const name of 'ynYN') expect(await hold(name)).toBe(true);
  for (const name of 'ynYN') expect(await hold(name, item('readme.md'))).toBe(true);
  expect(bodies).toEqual([]);
  await hold(']');
  expect(spot()).toBe('src/a.ts src/a.ts-2 1');
  const { promise, resolve } = later();
  heldReads = promise;
  await key('n');
  await key('n'); // the hunk is reverted, but the list is older
  expect(bodies).toEqual([{ turn: 't2', hunks: [{ path: 'src/a.ts', hunk: 'src/a.ts-2' }] }]);
  heldReads = undefined;
  resolve();
  await settle();
  expect(spot()).toBe('readme.md r 1');
  await key('n');
  expect(bodies).toHaveLength(2);
});

test('who has gone on to another file is not taken away from it', async () => {
  await show();
  const { promise, resolve } = later();
  held = promise;
  await key('n');
  item('readme.md').click();
  await settle();
  resolve();
  await settle();
  expect(spot()).toBe('readme.md r 1');
});

test('who goes on while a change is taken back, or looks at the file once more, stays where they are', async () => {
  for (const [keys, there] of [
    ['n', 'src/a.ts src/a.ts-1 1'],
    [']n', 'src/a.ts src/a.ts-1 1'],
  ] as const) {
    forgetReviews();
    await show();
    const listed = later();
    const read = later();
    heldReads = listed.promise;
    for (const name of keys) await key(name);
    heldReads = read.promise;
    listed.resolve();
    await settle();
    item('src/a.ts').click();
    heldReads = undefined;
    read.resolve();
    await settle();
    expect(spot()).toBe(there);
    ended?.();
    ended = undefined;
  }
});

test('who begins to write while a change is being kept is not led away', async () => {
  await show();
  const { promise, resolve } = later();
  heldMarks = promise;
  await key('y');
  await key('c');
  resolve();
  await settle();
  expect(spot()).toBe('src/a.ts src/a.ts-1 1');
  expect(document.querySelector('[data-hunk="0"] textarea')).not.toBeNull();
});

test('a step that is taken while the file is read once more counts', async () => {
  await show();
  const listed = later();
  const read = later();
  heldReads = listed.promise;
  window.dispatchEvent(new Event('focus')); // reads again
  await settle();
  heldReads = read.promise;
  listed.resolve();
  await settle();
  await key(']');
  read.resolve();
  await settle();
  expect(spot()).toBe('src/a.ts src/a.ts-2 1');
});

test('a hunk is taken back, and that can be taken back', async () => {
  await show();
  diffs['src/a.ts'] = diffOf('src/a.ts', {
    hunks: [hunk('src/a.ts-1', 10, { reverted: true, revertable: false }), hunk('src/a.ts-2', 40)],
  });
  await key('n');
  expect(bodies).toEqual([{ turn: 't2', hunks: [{ path: 'src/a.ts', hunk: 'src/a.ts-1' }] }]);
  expect(calls.slice(2)).toEqual(['/revert', '/ turn=t2', '/file turn=t2 path=src/a.ts']);
  expect(text('[data-hunk="0"]')).toContain('Discarded');
  expect(spot()).toBe('src/a.ts src/a.ts-2 1');
  const toast = toasts.list.at(-1);
  expect(toast?.text).toBe('Discarded a change in src/a.ts');
  toast?.undo?.();
  await settle();
  expect(calls).toContain('/restorations/back1/undo');
});

test('what is not on the disk any more is not taken back, and neither is anything while a turn runs', async () => {
  diffs['src/a.ts'] = diffOf('src/a.ts', { hunks: [hunk('x', 10, { revertable: false })] });
  await show();
  await key('n');
  expect(bodies).toEqual([]);
  expect(toasts.list.at(-1)?.text).toContain('are no longer on disk');
  conversations.sessions.set('s1', session({ turn: turn({ state: 'running' }) }));
  await key('N');
  expect(bodies).toEqual([]);
  expect(toasts.list.at(-1)?.text).toBe(
    'A turn is running in this directory. Wait until it ends, or stop it.',
  );
});

test('a file that others changed is told of, by its reason', async () => {
  restored = { id: '', files: [{ path: 'src/a.ts', outcome: 'conflict', reason: 'changes.edited' }] };
  await show();
  await key('N');
  expect(bodies).toEqual([{ turn: 't2', paths: ['src/a.ts'] }]);
  expect(toasts.list.at(-1)?.text).toBe('src/a.ts was left as it is. Changed after the turn.');
  expect(reviewOf('s1').last).toBeUndefined();
});

test('what a restoration that is taken back left alone is told of, all of it', async () => {
  await show();
  restored = {
    id: 'back1',
    files: [
      { path: 'src/a.ts', outcome: 'conflict', reason: 'changes.edited' },
      { path: 'readme.md', outcome: 'conflict', reason: 'changes.edited' },
      { path: 'new.ts', outcome: 'restored' },
    ],
  };
  await reviewOf('s1').takeBack('back1');
  expect(toasts.list.at(-1)?.text).toBe(
    '2 files were left as they are, src/a.ts first. Changed after the turn.',
  );
});

test('in the list the letters are about the file', async () => {
  await show();
  item('readme.md').focus();
  await key('y');
  expect(bodies).toEqual([{ turn: 't2', hunks: [{ path: 'readme.md', hunk: '' }], kept: true }]);
  await key('ArrowUp');
  expect(document.activeElement).toBe(item('src/a.ts'));
  await key('n');
  expect(bodies.at(-1)).toEqual({ turn: 't2', paths: ['src/a.ts'] });
  await key('ArrowUp');
  expect(item('src/').getAttribute('aria-expanded')).toBe('true');
  await key('ArrowLeft');
  expect(document.querySelector('[data-key="src/a.ts"]')).toBeNull();
  await key('n'); // a directory has none
  expect(bodies).toHaveLength(2);
});

test('comments outlive the tab, and become one message', async () => {
  const prompt = vi.spyOn(client, 'prompt').mockResolvedValue({} as never);
  await show();
  await key('c');
  const field = one<HTMLTextAreaElement>('textarea');
  expect(field.getAttribute('aria-label')).toBe('Comment on src/a.ts, line 11');
  field.value = 'Not like this';
  field.dispatchEvent(new Event('input', { bubbles: true }));
  ended?.();
  forgetReviews(); // the page is reloaded
  forgetNotes();
  await show();
  expect(one<HTMLTextAreaElement>('textarea').value).toBe('Not like this');
  await key('Enter', one('textarea'));
  await key(']');
  await key('ArrowDown');
  await key('c');
  const second = one<HTMLTextAreaElement>('textarea');
  second.value = 'Nor this';
  second.dispatchEvent(new Event('input', { bubbles: true }));
  await settle();
  expect(text('.bar')).toContain('2 comments');

  prompt.mockRejectedValueOnce(new ApiError('network'));
  const send = () =>
    [...document.querySelectorAll('.bar button')].find((it) => /one message/.test(it.textContent));
  (send() as HTMLElement).click();
  await settle();
  expect(reviewOf('s1').comments).toHaveLength(2); // a failed send keeps the comments
  (send() as HTMLElement).click();
  await settle();
  expect(prompt).toHaveBeenCalledTimes(2);
  const [of, message, how] = prompt.mock.calls[1] ?? [];
  expect([of, how]).toEqual(['s1', 'queue']);
  expect(message).toMatch(/^2 comments on your changes:/);
  expect(message).toContain('-old src/a.ts-1\n```\n\nNot like this');
  expect(message).toContain('+new src/a.ts-2\n```\n\nNor this');
  expect(reviewOf('s1').comments).toEqual([]);
  expect(Object.keys(localStorage).filter((it) => it.startsWith('deskhand.comments'))).toEqual([]);
});

test('Discard gives up the change of a comment and not the comment, and what is new can be taken back', async () => {
  const discard = async () => {
    const found = [...document.querySelectorAll<HTMLElement>('.box button')];
    found.find((it) => it.textContent.trim() === 'Discard')?.click();
    await settle();
  };
  const write = async (words: string) => {
    const field = one<HTMLTextAreaElement>('textarea');
    field.value = words;
    field.dispatchEvent(new Event('input', { bubbles: true }));
    await settle();
  };
  const said = () => reviewOf('s1').comments.map((it) => it.text);
  await show();
  await key('c');
  await write('Not like this');
  await key('Enter', one('textarea'));
  for (const words of ['Not like this', 'Nor this', '']) {
    one('.hunk .comment').click();
    await settle();
    await write(words);
    await discard();
    expect([said(), reviewOf('s1').draft]).toEqual([['Not like this'], undefined]);
  }
  await key('c'); // on the line of the comment
  await write('Nor this');
  await discard();
  expect(said()).toEqual(['Not like this']);
  ended?.();
  forgetReviews();
  forgetNotes();
  expect(said()).toEqual(['Not like this']);

  await show();
  await key(']');
  await key('ArrowDown');
  await key('c');
  await write('A new one');
  await discard();
  expect(said()).toEqual(['Not like this']);
  toasts.list.at(-1)?.undo?.();
  expect(said()).toEqual(['Not like this', 'A new one']);
});

test('what another window notes shows here, and goes with what is sent', async () => {
  const there = (id: string, text: string) => {
    const key = `deskhand.comments/s1/${id}`;
    const said = { id, path: 'src/a.ts', side: 'old', line: 11, op: '-', code: 'old src/a.ts-1', text };
    localStorage.setItem(key, JSON.stringify(said));
    window.dispatchEvent(new StorageEvent('storage', { key, storageArea: localStorage }));
  };
  let gone = () => {};
  const prompt = vi
    .spyOn(client, 'prompt')
    .mockReturnValue(new Promise((done) => (gone = () => done({} as never))));
  await show();
  there('c1', 'Not so');
  await settle();
  expect(text('.bar')).toContain('1 comment');
  expect(text('.comment')).toContain('Not so');
  const sent = reviewOf('s1').send();
  there('c2', 'Nor so'); // while the message is being sent
  gone();
  await sent;
  expect(prompt.mock.calls[0]?.[1]).toContain('Not so');
  expect(reviewOf('s1').comments.map((it) => it.text)).toEqual(['Nor so']);
  ended?.();
  ended = undefined;
  there('c3', 'Seen by nobody');
  expect(reviewOf('s1').comments).toHaveLength(1);
  await show();
  expect(reviewOf('s1').comments).toHaveLength(2);
});

test('keys that are about a hunk do nothing to a file whose hunks are not there yet', async () => {
  await show();
  await key(']');
  heldReads = later().promise;
  await key(']'); // into the next file, which is being read
  await key('n');
  await key('y');
  expect([reviewOf('s1').path, bodies]).toEqual(['readme.md', []]);
  await key('N'); // the whole file
  expect(bodies).toEqual([{ turn: 't2', paths: ['readme.md'] }]);
});

test('a comment whose line is no longer what it was is listed, and does not become one that nobody sees', async () => {
  await show();
  await key('c');
  const field = one<HTMLTextAreaElement>('textarea');
  field.value = 'Not like this';
  field.dispatchEvent(new Event('input', { bubbles: true }));
  await settle();
  one('.bar .count').click();
  await settle();
  expect(text('.bar ul')).toContain('Not like this'); // a comment counts even while it is being written
  await key('Enter', one('textarea'));
  diffs['src/a.ts'] = diffOf('src/a.ts', { hunks: [hunk('moved', 90)] });
  window.dispatchEvent(new Event('focus'));
  await settle();
  one('.bar .comment').click();
  await settle();
  expect(document.querySelector('textarea')).toBeNull();
  expect(text('.bar ul')).toContain('Not like this');
  expect(toasts.list.at(-1)?.text).toMatch(/^Line 11 of src\/a\.ts is no longer shown/);
  reviewOf('s1').edit(reviewOf('s1').comments[0] as Comment); // as after a reload of the page
  await settle();
  one('.bar [aria-label^="Remove the comment"]').click();
  await settle();
  expect([reviewOf('s1').comments, reviewOf('s1').draft]).toEqual([[], undefined]);
});

test('a comment in a hunk that is folded is not changed behind the fold', async () => {
  await show();
  await key('c');
  one<HTMLTextAreaElement>('textarea').value = 'Not like this';
  one('textarea').dispatchEvent(new Event('input', { bubbles: true }));
  await settle();
  await key('y', one('.changes'));
  expect(one<HTMLTextAreaElement>('textarea').value).toBe('Not like this');
  await key('Enter', one('textarea'));
  expect(document.querySelector('.hunk .comment')).toBeNull();
  one('.bar .count').click();
  await settle();
  one('.bar .comment').click();
  await settle();
  expect(one<HTMLTextAreaElement>('textarea').value).toBe('Not like this');
});

test('a file that became shorter than where the person was in it is shown from its beginning', async () => {
  const lines = Array.from({ length: 700 }, (_, n) => ({ op: '+' as const, text: `line ${n}` }));
  // Folded, so that few lines are mounted.
  diffs['src/a.ts'] = diffOf('src/a.ts', {
    hunks: [hunk('long', 1, { lines, kept: true }), hunk('end', 800)],
  });
  await show();
  item('src/a.ts').focus();
  await key('ArrowRight');
  await key('End');
  expect(text('.file')).toContain('above');
  diffs['src/a.ts'] = diffOf('src/a.ts', { hunks: [hunk('short', 5)] });
  window.dispatchEvent(new Event('focus'));
  await settle();
  expect(text('.file')).toContain('new short');
  expect(text('.file')).not.toContain('above');
});

test('a turn that ends meanwhile takes nothing out of the hands', async () => {
  await show();
  await key(']');
  list = {
    ...list,
    turns: [...turns, { id: 't3', at: at(3), files: 3, added: 1, removed: 0, undone: false }],
  };
  view.turns.set('t3', turn({ id: 't3' }));
  await settle();
  expect(calls.at(-2)).toBe('/ turn=t2');
  expect(spot()).toBe('src/a.ts src/a.ts-2 1');
  expect(text('.newer')).toContain('A later turn changed 3 files.');
  list = { ...list, turn: 't3', files: [file('new.ts')] };
  diffs['new.ts'] = diffOf('new.ts');
  one('.newer button').click();
  await settle();
  expect(calls.at(-2)).toBe('/');
  expect(spot()).toBe('new.ts new.ts-1 1');
});

test('a turn that changed nothing does not hide the one before', async () => {
  const before = list;
  list = { state: 'ready', turn: 't3', turns, files: [] };
  answering(client, (_, address) => {
    calls.push(address);
    if (address.includes('/file')) return diffs['src/a.ts'];
    return address.includes('turn=t2') ? before : list;
  });
  await show();
  expect(spot()).toBe('src/a.ts src/a.ts-1 1');
});

test.each([
  ['changes.no_git', 'git is not on this computer.'],
  ['changes.off', 'Undo is turned off in the settings.'],
  ['changes.never_heard_of', 'The reason is not known here (changes.never_heard_of).'],
])('why nothing is recorded: %s', async (reason, words) => {
  list = { state: 'off', reason, turns: [], files: [] };
  await show();
  expect(text()).toContain(words);
});

test('what cannot be shown says what it is', async () => {
  list.files = [
    file('a.png', { binary: true, hunks: 1, size: 2048 }),
    file('b.txt', { kind: 'renamed', was: 'c.txt' }),
  ];
  diffs = {
    'a.png': diffOf('a.png', { binary: true, hunks: [] }),
    'b.txt': diffOf('b.txt', { kind: 'renamed', was: 'c.txt', hunks: [] }),
  };
  list.left = [{ path: 'huge.bin', size: 1 << 30, reason: 'large' }];
  list.mixed = true;
  await show();
  expect(text('.file')).toContain('Not text, 2 KB.');
  expect(text()).toContain('The content of 1 file is not kept');
  expect(text()).toContain('Another conversation worked in this directory');
  await key('y'); // the whole file
  expect(bodies).toEqual([{ turn: 't2', hunks: [{ path: 'a.png', hunk: '' }], kept: true }]);
  await key(']');
  expect(text('.file')).toContain('It was renamed; nothing in it changed.');
});

test('hidden characters of a line are shown', async () => {
  diffs['src/a.ts'] = diffOf('src/a.ts', {
    hunks: [
      hunk('x', 1, {
        lines: [{ op: '+', text: `if (ok${String.fromCharCode(0x202e)}) {`, noNewline: true }],
      }),
    ],
  });
  await show();
  expect(text('[data-row="0"]')).toContain('if (ok[U+202E]) {');
  expect(text('[data-row="0"]')).toContain('No line break at the end');
});

test('the panel asks for a turn, and a file in it', async () => {
  await show({ tab: 'changes', turn: 't1', path: 'readme.md' });
  expect(calls).toContain('/ turn=t1');
});

test('changes that cannot be had leave what is shown as it is, and say so above it', async () => {
  await show();
  refuseReads = new ApiError('changes.not_looked_at');
  await reviewOf('s1').choose({ since: 'start' });
  await settle();
  expect(calls.at(-1)).toContain('since=start');
  expect(text('.changes [role=alert]')).toContain('The directory was not recorded before this turn');
  expect(text('.top')).not.toContain('Since the start');
  refuseReads = undefined;
  await key('y'); // applies to the visible file
  expect(bodies.at(-1)).toMatchObject({ turn: 't2' });
  expect(text('[data-hunk="1"]')).toContain('new src/a.ts-2');
  const again = [...document.querySelectorAll<HTMLElement>('.changes .failed button')][0];
  again?.click();
  await settle();
  expect(document.querySelector('.changes .failed')).toBeNull();
  expect(calls).toContain('/file since=start path=src/a.ts');
  expect(text('.top')).toContain('Since the start');
});

test('what was put back before the page was loaded can be taken back', async () => {
  list = { ...list, restoration: { id: 'r1', at: at(3), files: 1, path: 'readme.md' } };
  await show();
  expect(text('.last')).toContain('Restored readme.md');
  list = { ...list, restoration: { id: 'r2', at: at(3), files: 2, path: 'readme.md', unfinished: true } };
  await reviewOf('s1').load();
  await settle();
  expect(text('.last')).toContain('Restoring files was interrupted');
  const { restoration: _, ...rest } = list;
  list = rest;
  one('.last button').click();
  await settle();
  expect(calls).toContain('/restorations/r2/undo');
  expect(document.querySelector('.last')).toBeNull();
});

test('the footer of a turn offers the way back, whatever page undid it', async () => {
  const changed = { state: 'ready' as const, files: 2, added: 1, removed: 1 };
  const footer = async (changes: NonNullable<Turn['changes']>) => {
    document.body.replaceChildren();
    const actions = mount(Actions, {
      target: document.body,
      props: { turn: turn({ id: 't2', state: 'done', changes }), last: true, place: 'undo' },
    });
    await settle();
    ended = () => void unmount(actions);
    return text();
  };
  expect(await footer(changed)).toBe('Revert turn');
  expect(await footer({ ...changed, undone: true, restoration: 'r1' })).toBe('Redo turn');
  one('button').click();
  await settle();
  expect(calls).toContain('/restorations/r1/undo');
  // Only a part was undone.
  expect(await footer({ ...changed, restoration: 'r2' })).toBe('Revert turn Redo turn');
});

test('what may be somebody else’s work is told of', async () => {
  list = {
    ...list,
    mixed: true,
    reason: 'changes.late',
    files: [file('src/a.ts', { between: true }), file('readme.md')],
  };
  await show();
  expect(text('.hint')).toContain('Deskhand ended before');
  expect(text('.file header')).toContain('also changed between turns');
});

test('undoing a turn is not left while it goes on, and its way back is known however it ends', async () => {
  restored = { id: 'back3', files: [{ path: 'src/a.ts', outcome: 'restored' }], mixed: true };
  askUndo({ id: 't2', session: 's1' });
  await settle();
  expect(text('dialog')).toContain('Another conversation worked in this directory');
  let go = () => {};
  held = new Promise((done) => (go = done));
  const buttons = () => [...document.querySelectorAll<HTMLButtonElement>('dialog button')];
  buttons()
    .find((it) => it.textContent.trim() === 'Undo 1 file')
    ?.click();
  await settle();
  one('dialog').dispatchEvent(
    new KeyboardEvent('keydown', { key: 'Escape', bubbles: true, cancelable: true }),
  );
  one('dialog').dispatchEvent(new Event('cancel', { cancelable: true }));
  for (const it of buttons()) if (it.getAttribute('aria-expanded') === null) it.click();
  await settle();
  expect(document.querySelector('dialog')).not.toBeNull();
  expect(bodies.filter((it) => !(it as { preview: boolean }).preview)).toHaveLength(1);
  go();
  await settle();
  expect(document.querySelector('dialog')).toBeNull();
  expect(signals.at(-1)?.aborted).toBe(false);
  expect(reviewOf('s1').last?.id).toBe('back3');
});

test('what was as it was before already is told', async () => {
  await show();
  restored = { id: '', files: [{ path: 'src/a.ts', outcome: 'same' }] };
  await reviewOf('s1').revertHunk();
  await settle();
  expect(toasts.list.at(-1)?.text).toBe('Nothing to restore: it is already as it was before');
});

test('undoing a turn shows what it would do, and leaves alone what others changed', async () => {
  restored = {
    id: '',
    files: [
      { path: 'src/a.ts', outcome: 'restored' },
      { path: 'new.ts', outcome: 'removed' },
      { path: 'mine.ts', outcome: 'conflict', reason: 'changes.edited' },
      { path: '.env', outcome: 'conflict', reason: 'changes.not_kept' },
    ],
  };
  askUndo({ id: 't2', session: 's1' });
  await settle();
  expect(bodies).toEqual([{ turn: 't2', preview: true, force: false }]);
  expect(text('dialog')).toContain('new.ts Will be deleted (the turn created it)');
  expect(text('dialog')).toContain('mine.ts Changed after the turn');
  const button = (name: string) =>
    [...document.querySelectorAll('dialog button')].find(
      (it) => it.textContent.trim() === name,
    ) as HTMLElement;
  one('dialog input').click();
  await settle();
  expect(button('Undo 3 files')).toBeDefined(); // a binary file cannot be restored
  expect(text('dialog')).toContain('.env Its earlier content is not kept');
  one('dialog input').click();
  await settle();
  refuse = new ApiError('changes.turn_running');
  button('Undo 2 files').click();
  await settle();
  expect(text('dialog [role=alert]')).toBe(
    'A turn is running in this directory. Wait until it ends, or stop it.',
  );
  refuse = undefined;
  restored = { id: 'back2', files: restored.files }; // the person knows already that one is left alone
  button('Undo 2 files').click();
  await settle();
  expect(bodies.at(-1)).toEqual({ turn: 't2', preview: false, force: false });
  expect(document.querySelector('dialog')).toBeNull();
  const toast = toasts.list.at(-1);
  expect(toast?.text).toBe('Turn reverted: 2 files restored');
  toast?.undo?.();
  await settle();
  expect(calls).toContain('/restorations/back2/undo');
});
