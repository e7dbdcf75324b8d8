import { expect, test, vi } from 'vitest';
import { bytesOf } from './bytes';

test('what was fetched is kept, as far as there is room', async () => {
  const mib = 1024 * 1024;
  const blob = vi.fn((path: string) => Promise.resolve({ size: Number(path.split(':')[1]) * mib } as Blob));
  const get = (path: string) => bytesOf({ blob }, path, new AbortController().signal);
  for (const path of ['a:8', 'b:8', 'a:8', 'c:8', 'd:8']) await get(path);
  expect(blob).toHaveBeenCalledTimes(4); // a was kept
  await get('a:8'); // used after b, so a is still kept
  expect(blob).toHaveBeenCalledTimes(4);
  await get('b:8'); // b was dropped
  expect(blob).toHaveBeenCalledTimes(5);
  await get('large:9');
  await get('large:9');
  expect(blob).toHaveBeenCalledTimes(7);
});
