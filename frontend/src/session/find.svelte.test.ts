import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/errors';
import type { Found } from '../api/records';
import { Find, nearest } from './find.svelte';

const client = { find: vi.fn<(wanted: { q: string; session?: string | undefined }) => Promise<Found>>() };
const went: number[] = [];

/** Waits until the typed query was sent and answered. */
const typed = () => vi.advanceTimersByTimeAsync(200);

function begin(from?: number): Find {
  return new Find(client, 's1', from, (seq) => went.push(seq));
}

function answers(places: number[], pending = 0) {
  client.find.mockResolvedValue({ items: [], places, pending });
}

async function type(find: Find, query: string) {
  find.query = query;
  find.changed();
  await typed();
}

beforeEach(() => {
  vi.useFakeTimers();
  went.length = 0;
  client.find.mockReset();
});

afterEach(async () => {
  const last = begin();
  await type(last, ''); // the last query is kept
  last.close();
  vi.useRealTimers();
});

test('from the end the last place is shown, and the steps go round', async () => {
  answers([16, 32, 48]);
  const find = begin();
  await type(find, 'light');
  expect(client.find.mock.lastCall?.[0]).toMatchObject({ q: 'light', session: 's1' });
  expect([find.nth, find.places.length]).toEqual([3, 3]);
  find.step(1);
  find.step(1);
  find.step(-1);
  find.step(-1);
  expect(went).toEqual([48, 16, 32, 16, 48]);
  find.close();
});

test('further up the next place from there is', async () => {
  answers([16, 32, 48]);
  const find = begin(20);
  await type(find, 'light');
  expect(went).toEqual([32]);
  // A longer query searches on from the current place.
  answers([32, 48]);
  await type(find, 'lighthouse');
  expect(went).toEqual([32, 32]);
  find.close();
});

test('an older answer does not count', async () => {
  let arrive!: (found: Found) => void;
  client.find.mockReturnValueOnce(new Promise((done) => (arrive = done)));
  const find = begin();
  await type(find, 'a');
  answers([64]);
  await type(find, 'ab');
  arrive({ items: [], places: [16] });
  await typed();
  expect(find.places).toEqual([64]);
  find.close();
});

test('what is not searchable yet is asked for again, and moves nothing', async () => {
  answers([16], 3);
  const find = begin();
  await type(find, 'light');
  expect(find.pending).toBe(3);
  answers([16, 32]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect([find.pending, find.nth, find.places.length, went]).toEqual([0, 1, 2, [16]]);
  // New entries are added to the places.
  answers([16, 32, 48]);
  find.more();
  find.more();
  await vi.advanceTimersByTimeAsync(2_000);
  expect([find.places.length, went]).toEqual([3, [16]]);
  expect(client.find).toHaveBeenCalledTimes(3);
  find.close();
});

test('what was not searchable when it was looked for is shown once it is', async () => {
  answers([], 2);
  const find = begin();
  await type(find, 'light');
  expect([find.nth, went]).toEqual([0, []]);
  answers([16, 32]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect([find.nth, went]).toEqual([2, [32]]);
  // New entries do not move the view, not even the first match.
  answers([16, 32, 48]);
  find.more();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(went).toEqual([32]);
  answers([]);
  await type(find, 'dark');
  answers([48]);
  find.more();
  await vi.advanceTimersByTimeAsync(2_000);
  expect([find.places.length, went]).toEqual([1, [32]]);
  find.close();
});

test('a place that says something else by now is nobody’s', async () => {
  answers([16, 32], 1);
  const find = begin();
  await type(find, 'light');
  answers([16]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect([find.nth, find.at]).toEqual([0, undefined]);
  find.step(1);
  expect(find.nth).toBe(1);
  find.close();
});

test('nothing to look for is told, and a failure too', async () => {
  client.find.mockRejectedValue(new ApiError('search.empty'));
  const find = begin();
  await type(find, '!');
  expect([find.error?.code, find.answered, went]).toEqual(['search.empty', false, []]);
  await type(find, '  ');
  expect(find.error).toBeUndefined();
  find.close();
});

test('the next bar begins with what was looked for last', async () => {
  answers([16]);
  const find = begin();
  await type(find, 'light');
  find.close();
  const again = begin();
  expect(again.query).toBe('light');
  await typed();
  expect(went).toEqual([16, 16]);
  again.close();
});

test('the nearest place', () => {
  expect([nearest([1, 5, 9], 5), nearest([1, 5, 9], 6), nearest([1, 5, 9], 10), nearest([], 3)]).toEqual([
    1, 2, 2, -1,
  ]);
});
