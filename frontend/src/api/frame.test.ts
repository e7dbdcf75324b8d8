import { expect, test } from 'vitest';
import { FrameBatch } from './frame';

test('all that came before a frame is handed on with it, in order and once', () => {
  const frames: (() => void)[] = [];
  const taken: number[][] = [];
  const batch = new FrameBatch<number>(
    (items) => taken.push(items),
    (run) => frames.push(run),
  );
  batch.push([1, 2]);
  batch.push([3]);
  batch.push([]);
  expect(frames).toHaveLength(1);
  expect(taken).toEqual([]);
  frames.shift()?.();
  batch.push([4]);
  frames.shift()?.();
  expect(taken).toEqual([[1, 2, 3], [4]]);
});

test('what was flushed or cleared does not come again', () => {
  const frames: (() => void)[] = [];
  const taken: number[][] = [];
  const batch = new FrameBatch<number>(
    (items) => taken.push(items),
    (run) => frames.push(run),
  );
  batch.push([1]);
  batch.flush();
  frames.shift()?.();
  batch.push([2]);
  batch.clear();
  frames.shift()?.();
  expect(taken).toEqual([[1]]);
});
