import { describe, expect, test } from 'vitest';
import type { ChangedFile } from '../api/records';
import { inOrder, parentOf, treeRows } from './tree';

const file = (path: string): ChangedFile => ({
  path,
  kind: 'modified',
  added: 1,
  removed: 0,
  binary: false,
  large: false,
  size: 10,
  kept: 0,
  hunks: 1,
  now: 'same',
});

const drawn = (paths: string[], closed: string[] = []) =>
  treeRows(paths.map(file), new Set(closed)).map((row) => `${'  '.repeat(row.depth)}${row.name}`);

describe('the tree of changed files', () => {
  test('has directories first, and those that lead to one alone in one row', () => {
    expect(
      drawn(['readme.md', 'src/deep/only/b.ts', 'src/deep/only/a10.ts', 'src/deep/only/a9.ts', 'docs/x.md']),
    ).toEqual(['docs', '  x.md', 'src/deep/only', '  a9.ts', '  a10.ts', '  b.ts', 'readme.md']);
    expect(drawn(['src/a.ts', 'src/lib/b.ts', 'src/lib/c/d.ts'])).toEqual([
      'src',
      '  lib',
      '    c',
      '      d.ts',
      '    b.ts',
      '  a.ts',
    ]);
  });

  test('leaves out what stands in a closed directory', () => {
    expect(drawn(['a/b/c.ts', 'd.ts'], ['a/b/'])).toEqual(['a/b', 'd.ts']);
  });

  test('takes any name that a file can have', () => {
    const odd = ['__proto__/constructor', 'a\nb', 'toString'];
    expect(inOrder(odd.map(file)).map(({ path }) => path)).toEqual([
      '__proto__/constructor',
      'a\nb',
      'toString',
    ]);
  });

  test('knows the parent of a row', () => {
    const rows = treeRows(['a/b.ts', 'a/c.ts', 'd.ts'].map(file), new Set());
    expect([0, 1, 2, 3].map((at) => parentOf(rows, at))).toEqual([-1, 0, 0, -1]);
  });

  test('of twenty thousand files is made at once', () => {
    const many = Array.from({ length: 20_000 }, (_, n) => file(`dir${n % 100}/sub${n % 7}/file${n}.ts`));
    expect(inOrder(many)).toHaveLength(20_000);
  });
});
