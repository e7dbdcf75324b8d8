import { expect, test } from 'vitest';
import { session } from '../test/records';
import { recentDirectories } from './recent';

test('each directory once, the newest first, without those that have gone', () => {
  const at = (day: number) => `2026-11-0${day}T00:00:00.000Z`;
  const inside = (path: string, day: number, missing = false) =>
    session({ workspace: { id: path, path, missing }, updatedAt: at(day) });
  const list = [inside('/a', 1), inside('/b', 3), inside('/a', 4), inside('/gone', 5, true), inside('/c', 2)];
  expect(recentDirectories(list, 2)).toEqual([
    { path: '/a', at: at(4) },
    { path: '/b', at: at(3) },
  ]);
});
