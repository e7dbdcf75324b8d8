import { beforeEach, afterEach, expect, test, vi } from 'vitest';
import { guardFor, KeyGuard } from './guard';

beforeEach(() => vi.useFakeTimers({ toFake: ['performance', 'setTimeout'] }));
afterEach(() => vi.useRealTimers());

test('keys do nothing for the first 400 ms', () => {
  const guard = new KeyGuard();
  expect(guard.allows(performance.now(), false)).toBe(false);
  guard.show(performance.now());
  vi.advanceTimersByTime(guardFor - 1);
  expect(guard.allows(performance.now(), false)).toBe(false);
  vi.advanceTimersByTime(1);
  expect(guard.allows(performance.now(), false)).toBe(true);
});

test('a key that is held down never counts', () => {
  const guard = new KeyGuard();
  guard.show(0);
  expect(guard.allows(10_000, true)).toBe(false);
});

test('another request begins anew', () => {
  const guard = new KeyGuard();
  guard.show(0);
  guard.show(5_000);
  expect(guard.allows(5_100, false)).toBe(false);
});
