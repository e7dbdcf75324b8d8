import { expect, test } from 'vitest';
import { DoubleEscape } from './escape';

test('only the second press within two seconds counts', () => {
  const twice = new DoubleEscape();
  expect(twice.press(1_000)).toBe(false);
  expect(twice.press(3_500)).toBe(false);
  expect(twice.press(4_000)).toBe(true);
  expect(twice.press(4_100)).toBe(false);
});
