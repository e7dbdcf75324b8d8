import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { SearchQuery } from '../api/client';
import { ApiError } from '../api/errors';
import type { Found } from '../api/records';
import { hit } from '../test/records';
import { Search } from './query.svelte';

interface Asked extends SearchQuery {
  signal: AbortSignal;
  answer: (found: Found) => Promise<void>;
  fail: (error: ApiError) => Promise<void>;
}

let asked: Asked[];
let search: Search;

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  // Answers when the test says so, even an aborted call, because an answer may be on its way by then.
  search = new Search({
    find: (wanted, signal) =>
      new Promise<Found>((resolve, reject) => {
        const settle = () => vi.advanceTimersByTimeAsync(0).then(() => undefined);
        asked.push({
          ...wanted,
          signal,
          answer: (found) => (resolve(found), settle()),
          fail: (error) => (reject(error), settle()),
        });
      }),
  });
  search.open();
});

afterEach(() => {
  search.close();
  vi.useRealTimers();
});

function type(query: string) {
  search.query = query;
  search.changed();
}
const typed = (query: string) => (type(query), vi.advanceTimersByTimeAsync(200));
const entries = () => search.found.items.map((one) => one.entry);

describe('typing', () => {
  test('is waited for, then asked once', async () => {
    type('l');
    await vi.advanceTimersByTimeAsync(50);
    type('li');
    await vi.advanceTimersByTimeAsync(50);
    type(' lig ');
    expect(search.busy).toBe(true);
    await vi.advanceTimersByTimeAsync(200);
    expect(asked.map(({ q }) => q)).toEqual(['lig']);
  });

  test('aborts what was asked before, whose answer never stands over a newer one', async () => {
    await typed('old');
    await typed('new');
    expect(asked[0]?.signal.aborted).toBe(true);
    await asked[1]?.answer({ items: [hit(2)] });
    await asked[0]?.answer({ items: [hit(1)] });
    expect(entries()).toEqual(['e2']);
    expect(search.active).toBe('e2');
    expect(search.busy).toBe(false);
  });

  test('an old failure is none of the newer answer', async () => {
    await typed('old');
    await typed('new');
    await asked[0]?.fail(new ApiError('network'));
    expect([search.error, search.busy]).toEqual([undefined, true]);
  });

  test('nothing leaves nothing, and asks for nothing', async () => {
    await typed('word');
    await asked[0]?.answer({ items: [hit(1)], next: 'x' });
    await typed('  ');
    expect(entries()).toEqual([]);
    expect([search.answered, search.found.next, asked.length]).toEqual([false, undefined, 1]);
  });

  test('a failure takes the place of results that answer something else', async () => {
    await typed('word');
    await asked[0]?.answer({ items: [hit(1)] });
    await typed('words');
    await asked[1]?.fail(new ApiError('network'));
    expect(entries()).toEqual([]);
    expect(search.error?.code).toBe('network');
    search.now();
    await asked[2]?.answer({ items: [hit(3)] });
    expect(search.error).toBeUndefined();
  });
});

test('filters are sent as ids and moments; a day that is none filters nothing and is said', async () => {
  search.agent = 'mock';
  search.workspace = 'w1';
  search.from = '2026-11-20';
  search.to = '2026-11';
  await typed('word');
  expect(asked[0]).toMatchObject({ agent: 'mock', workspace: 'w1', to: '' });
  expect(new Date(asked[0]?.from ?? '').getHours()).toBe(0);
  expect([search.fromWrong, search.toWrong]).toEqual([false, true]);
});

test('more goes on where the page ended, and is not asked for twice', async () => {
  await typed('word');
  await asked[0]?.answer({ items: [hit(9), hit(8)], next: '8' });
  search.active = 'e8';
  void search.more();
  void search.more();
  expect(asked).toHaveLength(2);
  expect(asked[1]?.before).toBe('8');
  await asked[1]?.answer({ items: [hit(7)] });
  expect(entries()).toEqual(['e9', 'e8', 'e7']);
  expect(search.active).toBe('e8');
  await search.more();
  expect(asked).toHaveLength(2);
});

describe('what is not searchable yet', () => {
  test('is asked for again until it is, and moves nothing that is chosen', async () => {
    await typed('word');
    await asked[0]?.answer({ items: [hit(5), hit(4)], pending: 7 });
    search.active = 'e4';
    expect(search.pending).toBe(7);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(search.busy).toBe(false);
    await asked[1]?.answer({ items: [hit(6), hit(5), hit(4)] });
    expect(entries()).toEqual(['e6', 'e5', 'e4']);
    expect([search.active, search.pending]).toEqual(['e4', 0]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked).toHaveLength(2);
  });

  test('is not asked for while nobody looks', async () => {
    await typed('word');
    await asked[0]?.answer({ items: [], pending: 7 });
    search.close();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked).toHaveLength(1);
  });
});

describe('coming back', () => {
  test('keeps what was found and chosen, and brings it up to date', async () => {
    await typed('word');
    await asked[0]?.answer({ items: [hit(5), hit(4)] });
    search.active = 'e4';
    search.close();
    search.open();
    expect(entries()).toEqual(['e5', 'e4']);
    await asked[1]?.answer({ items: [hit(6), hit(5), hit(4)] });
    expect(entries()).toEqual(['e6', 'e5', 'e4']);
    expect(search.active).toBe('e4');
  });

  test('asks what was still being typed', async () => {
    await typed('word');
    await asked[0]?.answer({ items: [hit(5)] });
    type('other');
    search.close();
    search.open();
    expect(asked[1]?.q).toBe('other');
    await asked[1]?.answer({ items: [hit(1)] });
    expect(entries()).toEqual(['e1']);
    expect(search.active).toBe('e1');
  });
});
