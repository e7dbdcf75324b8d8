import { expect, test } from 'vitest';
import type { Found } from '../api/records';
import { hit } from '../test/records';
import { extended, groups, renewed } from './results';

const page = (numbers: number[], next?: string): Found => ({
  items: numbers.map((n) => hit(n)),
  ...(next === undefined ? {} : { next }),
});
const entries = (found: Pick<Found, 'items'>) => found.items.map((one) => one.seq);

test('hits stand by conversation, the newest first', () => {
  const list = groups([hit(9, { session: 'b' }), hit(8, { session: 'a' }), hit(7, { session: 'b' })]);
  expect(list.map((group) => [group.session, group.hits.map((one) => one.seq)])).toEqual([
    ['b', [9, 7]],
    ['a', [8]],
  ]);
  expect(list[0]?.first.seq).toBe(9);
  expect(groups([])).toEqual([]);
});

test('more is added, nothing twice', () => {
  const all = extended(page([9, 8], 'x'), page([8, 7], 'y'));
  expect(entries(all)).toEqual([9, 8, 7]);
  expect(all.next).toBe('y');
  expect(extended(all, page([6])).next).toBeUndefined();
});

test('a new first page keeps what was fetched beyond it', () => {
  const all = renewed(page([9, 8, 7, 6], 'far'), page([10, 9, 8], 'near'));
  expect(entries(all)).toEqual([10, 9, 8, 7, 6]);
  expect(all.next).toBe('far');
});

test('a new first page that does not reach what is held takes its place', () => {
  const all = renewed(page([9, 8], 'far'), page([20, 19], 'near'));
  expect(entries(all)).toEqual([20, 19]);
  expect(all.next).toBe('near');
});

test('a new first page is all when nothing follows it', () => {
  const all = renewed(page([9, 8, 7], 'far'), page([9]));
  expect(entries(all)).toEqual([9]);
  expect(all.next).toBeUndefined();
});

test('a new first page that ends as what is held has its own place to go on', () => {
  expect(renewed(page([9, 8], 'old'), page([9, 8], 'new')).next).toBe('new');
});
