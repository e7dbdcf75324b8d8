import { expect, test } from 'vitest';
import { ApiError } from '../api/errors';
import {
  age,
  baseName,
  bytes,
  duration,
  errorText,
  money,
  short,
  stopwatch,
  tilde,
  unmarked,
} from './format';

const now = Date.parse('2026-11-21T12:00:00.000Z');

test.each([
  [20_000, 'now'],
  [5 * 60_000, '5 m'],
  [3 * 3_600_000, '3 h'],
  [2 * 86_400_000, '2 d'],
])('an age of %d ms', (past, text) => {
  expect(age(new Date(now - past).toISOString(), now)).toBe(text);
});

test('an age of months is a day, with its year where that is another one', () => {
  expect(age('2026-03-05T12:00:00.000Z', now)).toBe('Mar 5');
  expect(age('2025-03-05T12:00:00.000Z', now)).toBe('Mar 5, 2025');
});

test.each([
  [800, '0.8 s'],
  [12_400, '12 s'],
  [59_700, '1 m 0 s'],
  [130_000, '2 m 10 s'],
  [3_840_000, '1 h 4 m'],
])('a duration of %d ms', (ms, text) => {
  expect(duration(ms)).toBe(text);
});

test('a running time', () => {
  expect([0, 192_000, 3_792_000].map(stopwatch)).toEqual(['00:00', '03:12', '1:03:12']);
});

test('counts, sizes and money in few figures', () => {
  expect([950, 1_000, 38_200, 120_000, 1_250_000].map(short)).toEqual(['950', '1k', '38k', '120k', '1.3M']);
  expect([10, 2_048, 3_500_000].map(bytes)).toEqual(['10 B', '2 KB', '3.3 MB']);
  expect(money(1.5, 'nonsense')).toBe('1.50 nonsense');
  expect(money(0.0012, 'USD')).toContain('0.0012');
});

test('paths', () => {
  expect([baseName('/a/b/'), baseName('C:\\x\\y'), baseName('/')]).toEqual(['b', 'y', '/']);
  expect(tilde('/home/ada/x', '/home/ada')).toBe('~/x');
  expect(tilde('/home/adam', '/home/ada')).toBe('/home/adam');
  expect(tilde('/x', '/')).toBe('/x');
});

test('a title without the marks of code', () => {
  expect(unmarked('`go test ./...`')).toBe('go test ./...');
  expect(unmarked('echo `rm -r ~`')).toBe('echo `rm -r ~`');
  expect(unmarked('`a` `b`')).toBe('`a` `b`');
});

test('errors have words, also those that nobody has words for', () => {
  expect(errorText(new ApiError('directory.missing', { path: '/x' }))).toBe(
    'The directory /x does not exist.',
  );
  expect(errorText(new ApiError('brand.new', {}, 500, 'the detail'))).toBe('That did not work: the detail');
  expect(errorText(new ApiError('toString'))).toBe('That did not work: toString');
});
