import { expect, test } from 'vitest';
import { budgetOf } from './budget';

test.each([
  ['2048', 2048],
  [' 512 ', 512],
  ['4,096', 4096],
  ['1 048 576', 1_048_576],
  ['1048577', undefined],
  ['0', undefined],
  ['', undefined],
  ['1.5', undefined],
  ['2 GB', undefined],
  ['-1', undefined],
])('%j is %s', (text, budget) => {
  expect(budgetOf(text)).toBe(budget);
});
