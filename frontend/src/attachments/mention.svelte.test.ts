import { afterEach, expect, test, vi } from 'vitest';
import { PathSearch } from './mention.svelte';

afterEach(() => vi.useRealTimers());

test('the last letters count, and what they find is waited for', async () => {
  vi.useFakeTimers();
  const asked: string[] = [];
  let answer: (found: object) => void = () => undefined;
  const call = vi.fn((_: string, { query, signal }: { query: { q: string }; signal: AbortSignal }) => {
    asked.push(query.q);
    return new Promise((done, fail) => {
      answer = done;
      signal.addEventListener('abort', () => fail(signal.reason));
    });
  });
  const search = new PathSearch({ call } as never, { session: 's1' });
  search.look('a');
  search.look('ab');
  await vi.advanceTimersByTimeAsync(60);
  expect(asked).toEqual(['ab']);
  const first = answer;
  search.look('abc');
  const found = search.found();
  await vi.advanceTimersByTimeAsync(60);
  first({ items: [{ path: '/old', relative: 'old' }], more: false }); // too late
  answer({ items: [{ path: '/w/abc', relative: 'abc' }], more: true });
  await found;
  expect([asked, search.items.map((one) => one.relative), search.more, search.looking]).toEqual([
    ['ab', 'abc'],
    ['abc'],
    true,
    false,
  ]);
  search.look('abc');
  search.end();
  search.look('abc'); // after its end the search asks again
  await vi.advanceTimersByTimeAsync(60);
  answer({ items: [] });
  await search.found();
  expect(search.items).toEqual([]);
});
