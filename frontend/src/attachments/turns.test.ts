import { afterEach, expect, test, vi } from 'vitest';
import { inTurn } from './turns';

afterEach(() => vi.useRealTimers());

test('few are asked for at a time, and none that nobody wants any more', async () => {
  const asked: number[] = [];
  const answer: (() => void)[] = [];
  const ends = Array.from({ length: 9 }, () => new AbortController());
  const all = ends.map((end, n) =>
    inTurn(end.signal, () => {
      asked.push(n);
      return new Promise<number>((resolve, reject) =>
        answer.push(() => (n === 1 ? reject(new Error('broken')) : resolve(n))),
      );
    }).catch((error: unknown) => String(error)),
  );
  await Promise.resolve();
  expect(asked).toEqual([0, 1, 2, 3]);
  ends[4]?.abort(new Error('gone'));
  for (let n = 0; n < 8; n++) {
    answer[n]?.();
    await new Promise((next) => setTimeout(next));
  }
  expect(asked).toEqual([0, 1, 2, 3, 5, 6, 7, 8]);
  expect(await Promise.all(all)).toEqual([0, 'Error: broken', 2, 3, 'Error: gone', 5, 6, 7, 8]);

  expect(await inTurn(new AbortController().signal, () => Promise.resolve('later'))).toBe('later');
});

test('pictures that never come do not hold up the others for long', async () => {
  vi.useFakeTimers();
  const { signal } = new AbortController();
  let late!: (value: string) => void;
  const all = Array.from({ length: 4 }, () =>
    inTurn(signal, () => new Promise<string>((done) => (late = done))),
  );
  const other = vi.fn(() => Promise.resolve('there'));
  const others = Array.from({ length: 9 }, () => inTurn(signal, other));
  await vi.advanceTimersByTimeAsync(9_000);
  expect(other).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await Promise.all(others)).toHaveLength(9);
  late('late');
  expect(await all.at(-1)).toBe('late');
  // The place of the timed-out request was given to another: the number of open requests stays the same.
  const asked = vi.fn(() => new Promise<void>(() => undefined));
  for (let n = 0; n < 9; n++) void inTurn(signal, asked);
  await vi.advanceTimersByTimeAsync(0);
  expect(asked).toHaveBeenCalledTimes(4);
});
