import { afterEach, expect, test, vi } from 'vitest';
import type { Equipment } from '../api/records';
import { Listing, Removals } from './listing.svelte';

const has = (...names: string[]): Equipment<{ name: string }> => ({
  items: names.map((name) => ({ name })),
  path: '/p',
});

afterEach(() => vi.useRealTimers());

test('an answer about a directory that was left is not shown', async () => {
  const answers = new Map<string, (found: Equipment<{ name: string }>) => void>();
  const listing = new Listing(
    (directory) => new Promise<Equipment<{ name: string }>>((done) => answers.set(directory, done)),
    new Removals(),
  );
  const first = listing.open('/a');
  const second = listing.open('/b');
  answers.get('/b')?.(has('of b'));
  answers.get('/a')?.(has('of a'));
  await Promise.all([first, second]);
  expect(listing.items).toEqual([{ name: 'of b' }]);
});

test('what another program writes is seen without asking, while the screen is there', async () => {
  vi.useFakeTimers();
  let found = has('one');
  const ask = vi.fn(() => Promise.resolve(found));
  const listing = new Listing(ask, new Removals());
  await listing.open('/a');
  const leave = listing.follow();
  found = has('one', 'two');
  await vi.advanceTimersByTimeAsync(4_000);
  expect(listing.items.map(({ name }) => name)).toEqual(['one', 'two']);
  leave();
  const times = ask.mock.calls.length;
  await vi.advanceTimersByTimeAsync(20_000);
  expect(ask).toHaveBeenCalledTimes(times);
});

test('a list that was asked for before an entry was saved does not take the entry away', async () => {
  const answers: ((found: Equipment<{ name: string }>) => void)[] = [];
  const listing = new Listing(
    () => new Promise<Equipment<{ name: string }>>((done) => answers.push(done)),
    new Removals(),
  );
  const opened = listing.open('/a');
  answers[0]?.(has());
  await opened;
  const before = listing.load();
  listing.put({ name: 'new' });
  answers[1]?.(has());
  await before;
  expect(listing.items).toEqual([{ name: 'new' }]);
  answers[2]?.(has('new', 'other'));
  await vi.waitFor(() => expect(listing.items).toHaveLength(2));
});

test('a failure is told, and goes when the next answer comes', async () => {
  let fails = true;
  const listing = new Listing(
    () => (fails ? Promise.reject(new Error('no')) : Promise.resolve(has('one'))),
    new Removals(),
  );
  await listing.open('/a');
  expect(listing.fault?.detail).toBe('no');
  fails = false;
  await listing.load();
  expect(listing.fault).toBeUndefined();
  expect(listing.items).toHaveLength(1);
});

test('a removal concerns one name in one directory', async () => {
  vi.useFakeTimers();
  const removals = new Removals();
  const remove = vi.fn(() => Promise.resolve());
  removals.add('/a', 'one', remove);
  expect([removals.has('/a', 'one'), removals.has('/b', 'one'), removals.has('/a', 'two')]).toEqual([
    true,
    false,
    false,
  ]);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(remove).toHaveBeenCalledExactlyOnceWith(false);
  expect(removals.has('/a', 'one')).toBe(false);
});
