import { describe, expect, test } from 'vitest';
import type { Comparison } from '../api/records';
import { session } from '../test/records';
import { groups, treeRows } from './groups';
import { gathered } from './members';

const title = (one: { title: string }) => one.title;

describe('the members of a comparison', () => {
  const comparison: Comparison = {
    id: 'c',
    title: 'Fix login',
    cwd: '/home/ada/app',
    repository: '/home/ada/app',
    commit: 'abc',
    createdAt: '2026-11-21T14:00:00.000Z',
    members: [
      { session: 'm1', agent: 'mock', name: 'Demo agent', begun: true },
      { session: 'm2', agent: 'mock', name: 'Demo agent 2', begun: true },
      { session: 'gone', agent: 'mock', name: 'Demo agent 3', begun: true },
    ],
  };
  const of = (id: string) => (['m1', 'm2', 'gone'].includes(id) ? comparison : undefined);
  const all = ['new', 'm2', 'old', 'm1'].map((id) => session({ id }));
  const rowsOf = (
    sessions: typeof all,
    open: boolean,
    lineOf = (_: unknown): string | undefined => undefined,
    collapsed = new Set<string>(),
  ) => gathered(treeRows(groups(sessions, '', false, title), collapsed, lineOf), of, () => open);

  test('are one row, where the first of them would stand', () => {
    expect(rowsOf(all, false).map((row) => row.key)).toEqual(['group:w1', 'new', 'compare:c', 'old']);
  });

  test('follow that row in their own order, when it is open, by their names', () => {
    const line = (one: unknown) => ((one as { id: string }).id === 'm1' ? 'Edits a.ts' : undefined);
    expect(
      rowsOf(all, true, line).map((row) => [row.key, row.kind === 'session' ? (row.name ?? '') : row.kind]),
    ).toEqual([
      ['group:w1', 'group'],
      ['new', ''],
      ['compare:c', 'members'],
      ['m1', 'Demo agent'],
      ['line:m1', 'line'],
      ['m2', 'Demo agent 2'],
      ['old', ''],
    ]);
  });

  test('are ordinary rows when a single one is listed', () => {
    const rows = rowsOf(all.slice(0, 3), true);
    expect(rows.map((row) => row.key)).toEqual(['group:w1', 'new', 'm2', 'old']);
    expect(rows.some((row) => row.kind === 'session' && row.name !== undefined)).toBe(false);
  });

  test('are not shown in a closed group', () => {
    const rows = rowsOf(all, true, undefined, new Set(['w1']));
    expect(rows.map((row) => row.key)).toEqual(['group:w1']);
  });

  test('that wait bring their row to the top', () => {
    const waits = all.map((one) => (one.id === 'm1' ? { ...one, waiting: 1 } : one));
    expect(rowsOf(waits, false).map((row) => row.key)).toEqual(['group:w1', 'compare:c', 'new', 'old']);
  });
});
