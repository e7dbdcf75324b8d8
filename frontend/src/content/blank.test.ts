import { expect, test } from 'vitest';
import { foldBlank } from './blank';

test('a run of empty lines is folded with its number, and a short one stays', () => {
  expect(foldBlank(`ls${'\n'.repeat(61)}curl x`)).toEqual([
    { text: 'ls' },
    { empty: 60 },
    { text: 'curl x' },
  ]);
  expect(foldBlank('a\n\n\nb')).toEqual([{ text: 'a\n\n\nb' }]);
  expect(foldBlank('a\n \n\t\n  \nb')).toEqual([{ text: 'a' }, { empty: 3 }, { text: 'b' }]);
  expect(foldBlank('\n\n\nb\n\n\n\n')).toEqual([{ empty: 3 }, { text: 'b' }, { empty: 4 }]);
  expect(foldBlank('')).toEqual([{ text: '' }]);
});
