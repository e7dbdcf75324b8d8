import { expect, test } from 'vitest';
import { inTurn } from './turns';

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
