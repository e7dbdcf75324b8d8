import { describe, expect, test } from 'vitest';
import type { ToolCall } from '../api/records';
import { entry, tool } from '../test/records';
import { plainItem, type Item } from '../state/transcript';
import {
  around,
  earlier,
  follow,
  later,
  most,
  opening,
  rowsBetween,
  shift,
  stay,
  step,
  weightOf,
  type Slice,
} from './window';

function item(seq: number, text?: string): Item {
  return plainItem({
    id: `e${seq}`,
    session: 's',
    generation: 1,
    seq,
    at: '2026-01-05T09:00:00.000Z',
    kind: text === undefined ? 'notice' : 'agent',
    ...(text === undefined ? {} : { text }),
  });
}

const many = (count: number) => Array.from({ length: count }, (_, seq) => item(seq));
const each = weightOf(item(0));
const heavy = (items: readonly Item[], { from, to }: Slice) =>
  items.slice(from, to).reduce((sum, one) => sum + weightOf(one), 0);

test('following mounts the tail', () => {
  const items = many(5_000);
  const slice = follow({ from: 0, to: 0 }, items);
  expect(slice.to).toBe(5_000);
  expect(heavy(items, slice)).toBeLessThanOrEqual(opening);
  expect(heavy(items, slice)).toBeGreaterThan(opening - each);
  expect(follow({ from: 0, to: 0 }, items.slice(0, 20))).toEqual({ from: 0, to: 20 });
});

test('of what is heavy less is mounted', () => {
  const code = '```go\n' + 'a := b(c)\n'.repeat(20) + '```\n';
  const items = Array.from({ length: 100 }, (_, seq) => item(seq, code));
  const slice = follow({ from: 0, to: 0 }, items);
  expect(weightOf(item(0, code))).toBeGreaterThan(100);
  expect(slice).toEqual({ from: 96, to: 100 });
});

test('a long message does not keep what came after it from being all that is seen', () => {
  const items = [item(0, 'word '.repeat(40_000)), ...many(4)];
  expect(follow({ from: 0, to: 0 }, items)).toEqual({ from: 0, to: 5 });
});

test('following removes old ones in steps, not one by one', () => {
  const items = many(1_200);
  let slice = follow({ from: 0, to: 0 }, items.slice(0, 100));
  let cuts = 0;
  for (let length = 100; length < 1_200; length++) {
    const held = items.slice(0, length);
    const next = follow(slice, held);
    if (next.from !== slice.from) cuts++;
    expect(heavy(held, next)).toBeLessThanOrEqual(opening + step);
    slice = next;
  }
  expect(cuts).toBeGreaterThan(1);
  expect(cuts).toBeLessThan(1_100 / Math.floor(step / each) + 2);
});

test('somebody who reads loses nothing above, and the mounted part stays bounded', () => {
  const items = many(10_000);
  const reading = { from: 100, to: 120 };
  expect(stay(reading, items.slice(0, 125), true)).toEqual({ from: 100, to: 125 });
  const full = stay(reading, items, true);
  expect(full.from).toBe(100);
  expect(heavy(items, full)).toBeLessThanOrEqual(most);
  expect(stay(reading, items, false)).toEqual(reading);
});

test('the slice moves up and down, never grows beyond its bound, and keeps what is seen', () => {
  const items = many(1_200);
  let slice: Slice = { from: 1_000, to: 1_030 };
  for (let n = 0; n < 200; n++) {
    slice = earlier(slice, items, { from: slice.from, to: slice.from + 5 });
    expect(heavy(items, slice)).toBeLessThanOrEqual(most);
  }
  expect(slice.from).toBe(0);
  for (let n = 0; n < 200; n++) {
    slice = later(slice, items, { from: slice.to - 5, to: slice.to });
    expect(heavy(items, slice)).toBeLessThanOrEqual(most);
  }
  expect(slice.to).toBe(1_200);

  const seen = { from: 900, to: 1_100 };
  expect(earlier(seen, items, seen).to).toBe(1_100);
  expect(later(seen, items, seen).from).toBe(900);
});

test('it shows the same after others were put before it, or dropped there', () => {
  expect(shift({ from: 0, to: 200 }, 200)).toEqual({ from: 200, to: 400 });
  expect(shift({ from: 300, to: 500 }, -250)).toEqual({ from: 50, to: 250 });
});

test('around an item as much is mounted on both sides, where there is as much', () => {
  const items = many(5_000);
  const slice = around(1_000, items);
  expect(slice.to - 1_000).toBe(1_000 - slice.from);
  expect(around(3, items).from).toBe(0);
  expect(around(4_999, items).to).toBe(5_000);
});

describe('a run of work', () => {
  const call = (seq: number, status: ToolCall['status']): Item =>
    plainItem(entry(seq, { kind: 'tool', tool: tool({ toolCallId: `c${seq}`, status }) }));
  const calls = (count: number, status: ToolCall['status'] = 'completed') =>
    Array.from({ length: count }, (_, seq) => call(seq, status));

  test('is mounted as a whole, and is light because it folds', () => {
    const items = [...many(4), ...calls(600)];
    expect(follow({ from: 0, to: 0 }, items)).toEqual({ from: 0, to: 604 });
    expect(around(300, items)).toEqual({ from: 0, to: 604 });
    expect(earlier({ from: 604, to: 604 }, items, { from: 604, to: 604 }).from).toBe(0);
    expect(rowsBetween(items, 0, 604)).toBe(5);
  });

  test('is as heavy as its visible failures, however many there are', () => {
    const light = follow({ from: 0, to: 0 }, [...many(100), ...calls(600)]);
    const heavy = follow({ from: 0, to: 0 }, [...many(100), ...calls(600, 'failed')]);
    const more = follow({ from: 0, to: 0 }, [...many(100), ...calls(900, 'failed')]);
    expect(heavy.from).toBeGreaterThan(light.from);
    expect(more.from).toBe(heavy.from);
  });

  test('of two turns are two', () => {
    const items = calls(4).map((item, n) => plainItem({ ...item.entry, turn: n < 2 ? 't1' : 't2' }));
    expect(rowsBetween(items, 0, 4)).toBe(2);
  });
});
