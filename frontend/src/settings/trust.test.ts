import { expect, test } from 'vitest';
import type { Approval, Executable } from '../api/records';
import { approvedAt, directoriesOf, gone } from './trust';

const approval = (directory: string, name: string, hash: string): Approval => ({
  directory,
  kind: 'mcp',
  name,
  hash,
  detail: '',
  approvedAt: `at ${hash}`,
});
const executable = (name: string, hash: string): Executable => ({
  kind: 'mcp',
  name,
  hash,
  detail: '',
  approved: false,
});

test('directories in which an agent waits come first', () => {
  const list = directoriesOf(
    [approval('/b', 'x', '1'), approval('/a', 'x', '1'), approval('/b', 'y', '2')],
    ['/c'],
  );
  expect(list.map(({ path, approvals, waits }) => [path, approvals.length, waits])).toEqual([
    ['/c', 0, true],
    ['/a', 1, false],
    ['/b', 2, false],
  ]);
  expect(directoriesOf([], [])).toEqual([]);
});

test('an approval is of one content', () => {
  const approvals = [approval('/a', 'x', '1'), approval('/a', 'x', '2'), approval('/a', 'y', '1')];
  expect(approvedAt(executable('x', '2'), approvals)).toBe('at 2');
  expect(approvedAt(executable('x', '3'), approvals)).toBeUndefined();
  expect(gone(approvals, [executable('x', '2')])).toEqual([approvals[0], approvals[2]]);
});
