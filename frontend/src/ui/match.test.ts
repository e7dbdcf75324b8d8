import { expect, test } from 'vitest';
import { best, score } from './match';

test('every word must occur, and beginnings count more', () => {
  expect(score('New conversation', 'conv new')).toBeGreaterThan(0);
  expect(score('New conversation', 'new x')).toBe(0);
  expect(score('inbox', 'in')).toBeGreaterThan(score('open the inbox', 'in'));
  expect(score('open the inbox', 'in')).toBeGreaterThan(score('begin', 'in'));
});

test('the best come first, equals in their order, no more than asked', () => {
  const all = ['begin', 'inbox', 'open inbox', 'other'].map((text) => ({ text }));
  expect(best(all, 'in', 2).map((one) => one.text)).toEqual(['inbox', 'open inbox']);
  expect(best(all, '', 10)).toHaveLength(4);
});
