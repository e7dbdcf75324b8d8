import { describe, expect, test } from 'vitest';
import { session } from '../test/records';
import { groups, treeRows } from './groups';

const title = (one: { title: string }) => one.title;
const web = { id: 'w2', path: '/home/ada/web' };

describe('groups', () => {
  test('are directories, in the order of their newest conversation', () => {
    const list = groups(
      [session({ id: 'a', workspace: web }), session({ id: 'b' }), session({ id: 'c', workspace: web })],
      '',
      false,
      title,
    );
    expect(list.map((group) => [group.path, group.sessions.map((one) => one.id)])).toEqual([
      ['/home/ada/web', ['a', 'c']],
      ['/home/ada/app', ['b']],
    ]);
  });

  test('have worktrees under the directory that they were made from', () => {
    const worktree = {
      path: '/home/ada/app.worktrees/fix',
      branch: 'deskhand/fix-123456',
      repository: '/home/ada/app',
      from: '/home/ada/app',
      base: 'abc',
      state: 'ready' as const,
    };
    const inTree = { id: 'w9', path: worktree.path };
    const all = [
      session({ id: 'tree', workspace: inTree, worktree }),
      session({ id: 'web', workspace: web }),
      session({ id: 'own' }),
    ];
    const list = groups(all, '', false, title);
    expect(list.map((group) => [group.id, group.path, group.sessions.map((one) => one.id)])).toEqual([
      ['w1', '/home/ada/app', ['tree', 'own']],
      ['w2', '/home/ada/web', ['web']],
    ]);
    expect(groups(all, 'fix-12', false, title)[0]?.sessions.map((one) => one.id)).toEqual(['tree']);
    expect(groups(all.slice(0, 1), '', false, title)[0]).toMatchObject({
      id: '/home/ada/app',
      missing: false,
    });
  });

  test('have what waits on top, then what is pinned, then the newest', () => {
    const list = groups(
      [
        session({ id: 'new' }),
        session({ id: 'pinned', pinned: true }),
        session({ id: 'waits', waiting: 1 }),
        session({ id: 'old' }),
      ],
      '',
      false,
      title,
    );
    expect(list[0]?.sessions.map((one) => one.id)).toEqual(['waits', 'pinned', 'new', 'old']);
  });

  test('leave out archived ones unless they are asked for', () => {
    const all = [session({ id: 'a', archivedAt: '2026-11-21T00:00:00.000Z' })];
    expect(groups(all, '', false, title)).toEqual([]);
    expect(groups(all, '', true, title)).toHaveLength(1);
  });

  test.each([
    ['login', ['a']],
    ['LOG app', ['a']],
    ['web', ['b']],
    ['urgent', ['b']],
    ['nothing', []],
  ])('filtered by %s', (filter, ids) => {
    const all = [
      session({ id: 'a' }),
      session({ id: 'b', title: 'Other', workspace: web, labels: ['urgent'] }),
    ];
    expect(groups(all, filter, false, title).flatMap((group) => group.sessions.map((one) => one.id))).toEqual(
      ids,
    );
  });
});

test('a group that is closed is one row', () => {
  const list = groups([session({ id: 'a' }), session({ id: 'b', workspace: web })], '', false, title);
  expect(treeRows(list, new Set(['w1']), () => undefined).map((row) => row.key)).toEqual([
    'group:w1',
    'group:w2',
    'b',
  ]);
});

test('subagents stand below their session, indented, each with its line', () => {
  const child = session({ id: 'child', subagent: { parent: 'a' } });
  const deep = session({ id: 'deep', subagent: { parent: 'child' } });
  const list = groups([session({ id: 'a' }), session({ id: 'b' })], '', false, title);
  const below = (one: { id: string }) => (one.id === 'a' ? [child] : one.id === 'child' ? [deep] : []);
  const rows = treeRows(list, new Set(), (one) => (one.id === 'child' ? 'Reads' : undefined), below);
  expect(rows.map((row) => [row.key, 'depth' in row ? row.depth : 0]).slice(1)).toEqual([
    ['a', 0],
    ['child', 1],
    ['line:child', 1],
    ['deep', 2],
    ['b', 0],
  ]);
});
