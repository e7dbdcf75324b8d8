import { expect, test } from 'vitest';
import { beginning, end } from './dates';

const local = (at: string | undefined) => at && new Date(at).toLocaleString('sv');

test('a day begins and ends in the time of the person', () => {
  expect(local(beginning('2026-11-21'))).toBe('2026-11-21 00:00:00');
  expect(local(end('2026-11-21'))).toBe('2026-11-22 00:00:00');
  expect(local(end('2026-12-31'))).toBe('2027-01-01 00:00:00');
  expect(local(end('2028-02-28'))).toBe('2028-02-29 00:00:00');
  expect(local(beginning(' 2026-03-29 '))).toBe('2026-03-29 00:00:00');
});

test.each(['', '2026', '21.11.2026', '2026-02-30', '2026-13-01', '2026-00-10', '2026-1-1'])(
  '%j is no day',
  (text) => {
    expect(beginning(text)).toBeUndefined();
    expect(end(text)).toBeUndefined();
  },
);
