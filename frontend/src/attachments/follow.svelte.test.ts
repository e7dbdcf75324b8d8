import { expect, test, vi } from 'vitest';
import '../strings/attachments';
import { Chips } from './chips.svelte';

test('each question is about its own link', async () => {
  const call = vi.fn();
  const client = {
    patchSession: vi.fn(() => Promise.resolve({})),
    call,
    headers: () => new Headers(),
  } as never;
  const chips = new Chips({ id: 's1' }, client);
  call.mockResolvedValueOnce({
    items: [],
    problems: [
      {
        name: 'link.txt',
        code: 'attachment.link_outside',
        params: { name: 'link.txt', target: '/one', path: '/a/link.txt' },
      },
      {
        name: 'link.txt',
        code: 'attachment.link_outside',
        params: { name: 'link.txt', target: '/two', path: '/b/link.txt' },
      },
    ],
  });
  chips.addPaths(['/a/link.txt', '/b/link.txt']);
  await chips.ended();
  expect(chips.troubles.map((one) => one.follow)).toEqual(['/a/link.txt', '/b/link.txt']);
});
