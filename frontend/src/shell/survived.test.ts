import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { mayOpen } from './survived';

beforeEach(() => {
  vi.useFakeTimers();
  localStorage.clear();
});
afterEach(() => vi.useRealTimers());

test('what was opened by itself in two pages that did not live is not opened a third time', () => {
  expect([mayOpen('a'), mayOpen('a'), mayOpen('a')]).toEqual([true, true, false]);
  // The session was skipped once; from then on the count begins again.
  expect(mayOpen('a')).toBe(true);
});

test('a page that has lived for a moment, or was left, did not end of it', () => {
  expect(mayOpen('a')).toBe(true);
  vi.advanceTimersByTime(10_000);
  expect([mayOpen('a'), mayOpen('a')]).toEqual([true, true]);
  window.dispatchEvent(new Event('pagehide'));
  expect(mayOpen('a')).toBe(true);
});

test('another conversation counts for itself, and what is not ours is no count', () => {
  expect([mayOpen('a'), mayOpen('a'), mayOpen('b'), mayOpen('a')]).toEqual([true, true, true, true]);
  localStorage.setItem('deskhand.opening', '{"id":1}');
  expect(mayOpen('a')).toBe(true);
});
