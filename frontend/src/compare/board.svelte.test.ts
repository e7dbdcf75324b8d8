import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import type { Comparison, ComparisonResults, MemberResult } from '../api/records';
import { client, comparisons, toasts } from '../state/state';
import { answering } from '../test/calls';
import { session } from '../test/records';
import { boardOf } from './board.svelte';

const comparison: Comparison = {
  id: 'c',
  title: 'Fix login',
  cwd: '/home/ada/app',
  repository: '/home/ada/app',
  commit: 'abc',
  createdAt: '2026-11-21T14:00:00.000Z',
  members: ['a', 'b'].map((id) => ({ session: id, agent: 'mock', name: id.toUpperCase(), begun: true })),
};

function result(id: string, paths: readonly string[]): MemberResult {
  return {
    session: session({ id }),
    name: id.toUpperCase(),
    files: paths.map((path) => ({ path, kind: 'modified', added: 1, removed: 1 })),
    added: 0,
    removed: 0,
    turns: 1,
    workedMs: 1,
  };
}

const results = (ofB: readonly string[]): ComparisonResults => ({
  ...comparison,
  message: 'Fix it',
  results: [result('a', ['x.go']), result('b', ofB)],
});

let answer: (method: string, address: string, body: unknown) => unknown;
let calls: string[];
let visibility: DocumentVisibilityState;
const reads = () => calls.filter((one) => one === 'GET /client/comparisons/c').length;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  comparisons.byId.clear(); // and with that, the boards
  boardOf('other');
  comparisons.put(comparison);
  calls = [];
  visibility = 'visible';
  vi.spyOn(document, 'visibilityState', 'get').mockImplementation(() => visibility);
  answer = () => results(['x.go', 'y.go']);
  answering(client, (method, address, { body }) => {
    calls.push(`${method} ${address}`);
    return answer(method, address, body);
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  comparisons.byId.clear();
  toasts.list = [];
});

test('many changes are one read a second, and the last of them is not missed', async () => {
  const board = boardOf('c');
  for (let n = 0; n < 5; n++) board.refresh();
  await vi.advanceTimersByTimeAsync(0);
  expect(reads()).toBe(1);
  await vi.advanceTimersByTimeAsync(999);
  expect(reads()).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(reads()).toBe(2);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(reads()).toBe(2);
});

test('slow reads are rarer', async () => {
  const board = boardOf('c');
  const wait = (ms: number) => new Promise((done) => setTimeout(done, ms));
  answer = () => wait(2_000).then(() => results([]));
  board.refresh();
  await vi.advanceTimersByTimeAsync(2_000);
  board.refresh();
  await vi.advanceTimersByTimeAsync(5_999);
  expect(reads()).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(reads()).toBe(2);
});

test('a hidden page reads nothing', async () => {
  visibility = 'hidden';
  boardOf('c').refresh();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(reads()).toBe(0);
});

test('a board that is left reads nothing more', async () => {
  const board = boardOf('c');
  board.refresh();
  board.refresh();
  await vi.advanceTimersByTimeAsync(0);
  board.stop();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(reads()).toBe(1);
});

test('a read that fails is told, and what was read before stays', async () => {
  const board = boardOf('c');
  await board.load();
  answer = () => {
    throw new ApiError('network');
  };
  await board.load();
  expect(board.error?.code).toBe('network');
  expect(board.results?.message).toBe('Fix it');
  answer = () => results([]);
  await board.load();
  expect(board.error).toBeUndefined();
});

test('files of one member are chosen at a time, and only those that are changed', async () => {
  const board = boardOf('c');
  await board.load();
  board.toggle('b', 'x.go', true);
  board.toggle('b', 'y.go', true);
  expect([...(board.chosen?.paths ?? [])]).toEqual(['x.go', 'y.go']);
  answer = () => results(['x.go']);
  await board.load();
  expect([...(board.chosen?.paths ?? [])]).toEqual(['x.go']);
  board.toggle('a', 'x.go', true);
  expect(board.chosen?.from).toBe('a');
  board.toggle('a', 'x.go', false);
  expect(board.chosen).toBeUndefined();
});

test('files that were taken can be given back', async () => {
  const board = boardOf('c');
  await board.load();
  board.choose('b', ['x.go', 'y.go']);
  const bodies: unknown[] = [];
  answer = (method, _, body) => {
    if (method === 'GET') return results(['x.go', 'y.go']);
    bodies.push(body);
    return {
      id: 'r1',
      files: [
        { path: 'x.go', outcome: 'restored' },
        { path: 'y.go', outcome: 'restored' },
      ],
    };
  };
  await board.takeFiles('b', 'a', ['x.go', 'y.go']);
  expect(bodies).toEqual([{ from: 'b', to: 'a', paths: ['x.go', 'y.go'] }]);
  expect(board.chosen).toBeUndefined();
  const [toast] = toasts.list;
  expect(toast?.text).toBe('2 files of A are now as in B');
  toast?.undo?.();
  await vi.advanceTimersByTimeAsync(0);
  expect(calls).toContain('POST /client/sessions/a/changes/restorations/r1/undo');
  expect(toasts.list.at(-1)?.text).toBe('2 files of A are as before');
});

test.each([
  ['same', undefined, 'A has this already.'],
  ['conflict', 'changes.in_the_way', 'A folder or link is in its place.'],
])('a file whose outcome is %s is told', async (outcome, reason, want) => {
  const board = boardOf('c');
  await board.load();
  answer = (method) =>
    method === 'GET' ? results(['x.go']) : { id: '', files: [{ path: 'x.go', outcome, reason }] };
  await board.takeFiles('b', 'a', ['x.go']);
  expect(toasts.list.map((one) => one.text).join()).toContain(want);
  expect(toasts.list).toHaveLength(1);
});

test('a member whose conversation was deleted is gone', async () => {
  const board = boardOf('c');
  const members = comparison.members.slice(0, 1);
  answer = () => ({ ...results([]), members });
  await board.load();
  expect(comparisons.byId.get('c')?.members).toEqual(members);
  const put = vi.spyOn(comparisons, 'put');
  await board.load();
  expect(put).not.toHaveBeenCalled(); // otherwise each read would ask for the next one
});

test('what could not be removed after one was taken is told', async () => {
  const board = boardOf('c');
  await board.load();
  const [a, b] = comparison.members;
  answer = (method) =>
    method === 'GET'
      ? results([])
      : {
          ...comparison,
          taken: 'a',
          members: [a, { ...b, problem: 'refused: x', refused: { code: 'worktree.disk_full' } }],
        };
  expect(await board.take('a')).toBe(false);
  expect(comparisons.byId.get('c')?.taken).toBe('a');
  expect(toasts.list[0]?.text).toBe(
    'What is left of B could not be removed: The disk is full. Nothing was changed.',
  );
});
