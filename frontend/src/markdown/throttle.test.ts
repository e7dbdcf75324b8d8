import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Throttle } from './throttle';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test('the first goes at once, then one every 50 ms, and the last always', () => {
  const seen: number[] = [];
  const throttle = new Throttle<number>(50, (value) => seen.push(value));
  for (let n = 0; n < 20; n++) {
    throttle.push(n);
    vi.advanceTimersByTime(10);
  }
  vi.advanceTimersByTime(100);
  expect(seen[0]).toBe(0);
  expect(seen.at(-1)).toBe(19);
  expect(seen.length).toBeLessThanOrEqual(6);
});

test('flush lets through what waits, close forgets it', () => {
  const seen: number[] = [];
  const throttle = new Throttle<number>(50, (value) => seen.push(value));
  throttle.push(1);
  throttle.push(2);
  throttle.flush();
  expect(seen).toEqual([1, 2]);
  throttle.push(3);
  throttle.close();
  vi.advanceTimersByTime(100);
  expect(seen).toEqual([1, 2]);
});

test('what costs much is let through less often', () => {
  const taken: string[] = [];
  const throttle = new Throttle<string>(50, (value) => {
    taken.push(value);
    throttle.took(40);
  });
  throttle.push('a');
  throttle.push('b');
  vi.advanceTimersByTime(190);
  expect(taken).toEqual(['a']);
  vi.advanceTimersByTime(20);
  expect(taken).toEqual(['a', 'b']);
});

test('so is what takes long to be drawn', () => {
  const taken: string[] = [];
  let told: (ms: number) => void = () => undefined;
  const throttle = new Throttle<string>(
    50,
    (value) => taken.push(value),
    (tell) => (told = tell),
  );
  throttle.push('a');
  throttle.push('b');
  told(60); // only now
  vi.advanceTimersByTime(170);
  expect(taken).toEqual(['a']);
  vi.advanceTimersByTime(20);
  expect(taken).toEqual(['a', 'b']);
  told(1);
  throttle.push('c');
  vi.advanceTimersByTime(60);
  expect(taken).toEqual(['a', 'b', 'c']);
});
