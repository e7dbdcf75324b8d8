import { expect, test } from 'vitest';
import type { MemberResult } from '../api/records';
import { fileRows, takenPaths } from './table';

type Cell = MemberResult['files'][number];

const file = (path: string, part: Partial<Cell> = {}): Cell => ({
  path,
  kind: 'modified',
  added: 1,
  removed: 0,
  ...part,
});

test('each file that a member has changed is a row, with what each has done to it', () => {
  const [ours, theirs] = [file('b.go'), file('b.go', { added: 7 })];
  const own = file('a.go', { kind: 'added' });
  expect(fileRows([{ files: [ours] }, { files: [] }, { files: [theirs, own] }])).toEqual([
    { path: 'a.go', cells: [undefined, undefined, own] },
    { path: 'b.go', cells: [ours, undefined, theirs] },
  ]);
});

test('a renamed file is taken with its earlier path', () => {
  expect(takenPaths([file('new.go', { kind: 'renamed', was: 'old.go' }), file('b.go')])).toEqual([
    'new.go',
    'old.go',
    'b.go',
  ]);
});
