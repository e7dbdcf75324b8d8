import { expect, test, vi } from 'vitest';
import { Client } from '../api/client';
import { dataPlace } from './calls';

test('where the data is, an engine without AbortSignal.any asks as well, until an answer is late or nobody wants it', async () => {
  vi.useFakeTimers();
  vi.spyOn(AbortSignal, 'any').mockImplementation(() => {
    throw new TypeError('AbortSignal.any is not a function');
  });
  const place = { path: '/home/ada/.local/share/deskhand' };
  const fetched = vi
    .fn<typeof fetch>()
    .mockResolvedValueOnce(Response.json(place))
    .mockImplementation(
      (_, init) =>
        new Promise((__, fail) => init?.signal?.addEventListener('abort', () => fail(new Error('aborted')))),
    );
  const client = new Client({ fetch: fetched, surface: 'browser' });
  const life = new AbortController();
  expect(await dataPlace(client, life.signal)).toEqual(place);

  const late = expect(dataPlace(client, life.signal)).rejects.toMatchObject({ name: 'TimeoutError' });
  await vi.advanceTimersByTimeAsync(30_000);
  await late;
  const gone = expect(dataPlace(client, life.signal)).rejects.toMatchObject({ name: 'AbortError' });
  life.abort();
  await gone;
  vi.useRealTimers();
});
