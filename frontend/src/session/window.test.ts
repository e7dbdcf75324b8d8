import { expect, test } from 'vitest';
import { around, earlier, follow, later, most, shift, stay, step, tailSize } from './window';

test('following mounts the tail', () => {
  expect(follow({ from: 0, to: 0 }, 5_000)).toEqual({ from: 5_000 - tailSize, to: 5_000 });
  expect(follow({ from: 0, to: 0 }, 20)).toEqual({ from: 0, to: 20 });
});

test('following removes old ones in steps, not one by one', () => {
  let slice = follow({ from: 0, to: 0 }, tailSize);
  let cuts = 0;
  for (let length = tailSize; length < tailSize + 1_000; length++) {
    const next = follow(slice, length);
    if (next.from !== slice.from) cuts++;
    expect(next.to - next.from).toBeLessThanOrEqual(tailSize + step);
    slice = next;
  }
  expect(cuts).toBeLessThan(15);
});

test('somebody who reads loses nothing above, and the mounted part stays bounded', () => {
  const reading = { from: 100, to: 300 };
  expect(stay(reading, 310, true)).toEqual({ from: 100, to: 310 });
  expect(stay(reading, 10_000, true)).toEqual({ from: 100, to: 100 + most });
  expect(stay(reading, 10_000, false)).toEqual(reading);
});

test('the slice moves up and down and never grows beyond its bound', () => {
  let slice = { from: 1_000, to: 1_200 };
  for (let n = 0; n < 20; n++) slice = earlier(slice);
  expect(slice).toEqual({ from: 0, to: most });
  for (let n = 0; n < 40; n++) slice = later(slice, 1_200);
  expect(slice).toEqual({ from: 1_200 - most, to: 1_200 });
});

test('it shows the same after others were put before it, or dropped there', () => {
  expect(shift({ from: 0, to: 200 }, 200)).toEqual({ from: 200, to: 400 });
  expect(shift({ from: 300, to: 500 }, -250)).toEqual({ from: 50, to: 250 });
});

test('around an item as much is mounted on both sides, where there is as much', () => {
  expect(around(1_000, 5_000)).toEqual({ from: 1_000 - tailSize / 2, to: 1_000 + tailSize / 2 });
  expect(around(3, 5_000)).toEqual({ from: 0, to: 3 + tailSize / 2 });
  expect(around(4_999, 5_000)).toEqual({ from: 4_999 - tailSize / 2, to: 5_000 });
});
