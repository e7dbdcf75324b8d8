import { describe, expect, test } from 'vitest';
import type { TreeEntry } from '../api/records';
import { joined, relativeTo, rowsOf, seenRows, wayTo, type Known } from './rows';

const entry = (path: string, more: Partial<TreeEntry> = {}): TreeEntry => ({
  name: path.split('/').at(-1) ?? '',
  path,
  kind: 'file',
  size: 1,
  modified: '2026-01-01T00:00:00.000Z',
  ...more,
});
const directory = (path: string, more: Partial<TreeEntry> = {}) =>
  entry(path, { kind: 'directory', ...more });
const there = (...items: TreeEntry[]): Known => ({ state: 'there', items, more: false });

const lines = (...args: Parameters<typeof rowsOf>) =>
  rowsOf(...args).map((row) =>
    row.kind === 'entry'
      ? `${' '.repeat(row.level)}${row.open === undefined ? '' : row.open ? 'v ' : '> '}${row.entry.name}`
      : `${' '.repeat(row.level)}(${row.what} ${row.text})`,
  );

describe('rowsOf', () => {
  test('one directory needs no row of its own', () => {
    const known = new Map([['/w', there(directory('/w/src'), entry('/w/a'))]]);
    expect(lines([directory('/w')], known, new Set())).toEqual([' > src', ' a']);
  });

  test('several have one, and one that is gone cannot be opened', () => {
    const known = new Map([['/w', there()]]);
    expect(
      lines([directory('/w'), directory('/x', { missing: true })], known, new Set(['/w', '/x'])),
    ).toEqual([' v w', '  (empty )', ' x']);
  });

  test('what is open is shown within, with what is not known of it', () => {
    const known = new Map<string, Known>([
      [
        '/w',
        {
          state: 'there',
          more: true,
          items: [
            directory('/w/a'),
            directory('/w/b'),
            directory('/w/c'),
            entry('/w/l', { kind: 'symlink', leads: 'directory' }),
            entry('/w/o', { kind: 'symlink' }),
          ],
        },
      ],
      ['/w/a', { state: 'loading' }],
      ['/w/b', { state: 'fault', text: 'no' }],
      ['/w/l', there(entry('/w/l/deep'))],
    ]);
    expect(lines([directory('/w')], known, new Set(['/w/a', '/w/b', '/w/l', '/w/o']))).toEqual([
      ' v a',
      '  (loading )',
      ' v b',
      '  (fault no)',
      ' > c',
      ' v l',
      '  deep',
      ' o',
      ' (more 5)',
    ]);
  });

  test('rows have names of their own where a link leads up', () => {
    const up = entry('/w/up', { kind: 'symlink', leads: 'directory' });
    const known = new Map([
      ['/w', there(up, entry('/w/a'))],
      ['/w/up', there(entry('/w/up/a'))],
    ]);
    const ids = rowsOf([directory('/w')], known, new Set(['/w/up'])).map((row) => row.id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('names with line breaks and other directions stay what they are', () => {
    const known = new Map([['/w', there(entry('/w/a\nb'), entry('/w/\u202etxt.exe'))]]);
    expect(rowsOf([directory('/w')], known, new Set())).toHaveLength(2);
  });
});

test('of a long list the rows around what is seen are made', () => {
  expect(seenRows(0, 280, 28, 5_000)).toEqual({ from: 0, to: 20 });
  expect(seenRows(28 * 1_000, 280, 28, 5_000)).toEqual({ from: 990, to: 1_020 });
  expect(seenRows(0, 280, 28, 3)).toEqual({ from: 0, to: 3 });
});

test('a message mentions paths from the directory of the conversation', () => {
  expect(relativeTo(['/w', '/x'], '/w/src/a.ts')).toBe('src/a.ts');
  expect(relativeTo(['/w', '/x'], '/x/a.ts')).toBe('/x/a.ts');
  expect(relativeTo(['/w'], '/wide/a.ts')).toBe('/wide/a.ts');
  expect(relativeTo(['C:\\w'], 'C:\\w\\a.ts')).toBe('a.ts');
});

test('the way to a file goes through its directories', () => {
  expect(wayTo(['/w'], '/w/a/b/c.ts')).toEqual(['/w', '/w/a', '/w/a/b']);
  expect(wayTo(['/w'], '/w/c.ts')).toEqual(['/w']);
  expect(wayTo(['/w'], '/x/c.ts')).toEqual([]);
  expect(joined('/w', 'a')).toBe('/w/a');
  expect(joined('C:\\w', 'a')).toBe('C:\\w\\a');
});
