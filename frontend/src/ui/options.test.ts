import { expect, test } from 'vitest';
import { move, TypeAhead } from './options';

test('arrows stop at the ends, Home and End go there', () => {
  expect([move('ArrowDown', 0, 3), move('ArrowDown', 2, 3), move('ArrowUp', 0, 3)]).toEqual([1, 2, 0]);
  expect([move('Home', 2, 3), move('End', 0, 3), move('x', 0, 3), move('End', 0, 0)]).toEqual([
    0,
    2,
    undefined,
    undefined,
  ]);
});

test('typing leads to what begins so; the same letter again goes on', () => {
  const names = ['Ask', 'Auto', 'Plan'];
  const typed = new TypeAhead();
  expect(typed.find('p', names, 0, 0)).toBe(2);
  expect(typed.find('a', names, 2, 2_000)).toBe(0);
  expect(typed.find('u', names, 0, 2_100)).toBe(1);
  expect(typed.find('Enter', names, 0, 2_200)).toBeUndefined();
});
