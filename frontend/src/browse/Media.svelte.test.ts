import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import { client } from '../state/state';
import '../strings/browse';
import Media from './Media.svelte';

let ended: (() => void) | undefined;

afterEach(() => {
  ended?.();
  vi.unstubAllGlobals();
});

const bytes = (text: string) => new Blob([Uint8Array.from(text, (sign) => sign.charCodeAt(0))]);
const png = (side: string) => bytes(`\x89PNG\r\n\x1a\n\0\0\0\rIHDR${side}${side}\x01\0\0\0\0`);

test.each([
  ['a picture', png('\0\0\x20\0'), true],
  ['one of very many pixels', png('\0\0\x20\x01'), false],
  ['one of a kind that is not measured', bytes('\0\0\0\x20ftypavif'), true],
])('%s', async (_, blob, shown) => {
  vi.spyOn(client, 'blob').mockResolvedValue(blob);
  // A subclass, because a replaced global URL would stay for other tests.
  class Made extends URL {
    static override createObjectURL = () => 'blob:1';
    static override revokeObjectURL = () => undefined;
  }
  vi.stubGlobal('URL', Made);
  const of = { path: '/a', name: 'a', size: 1, kind: 'image', version: '1' } as never;
  const made = mount(Media, { target: document.body, props: { session: 's1', of } });
  ended = () => void unmount(made);
  flushSync();
  await vi.waitFor(() => expect(document.body.textContent).not.toContain('Looking'));
  expect(document.querySelector('img') !== null).toBe(shown);
});
