import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import { readContent } from './blocks';
import ContentBlock from './ContentBlock.svelte';
import './pixels'; // loads the module now, so that the tests do not wait for its compilation

let ended: (() => void) | undefined;

afterEach(() => ended?.());

async function show(data: string) {
  const content = readContent({ type: 'image', mimeType: 'image/png', data });
  const block = mount(ContentBlock, { target: document.body, props: { content } });
  ended = () => void unmount(block);
  await vi.waitFor(() => expect(document.querySelector('img, .chip')).not.toBeNull());
}

const png = (side: string, rest = 0) =>
  btoa(`\x89PNG\r\n\x1a\n\0\0\0\rIHDR${side}${side}\x01\0\0\0\0${'\0'.repeat(rest)}`);

test('a picture is shown', async () => {
  await show(png('\0\0\x20\0')); // 8192 by 8192
  expect(document.querySelector('img')).not.toBeNull();
});

test.each([
  ['of very many pixels', png('\0\0\x20\x01')],
  ['of very many pixels and bytes', png('\0\0\x20\x01', 5 * 1024 * 1024)],
  ['that cannot be measured', btoa('BM and so on')],
])('one %s is named, and nothing leads to it', async (_, data) => {
  await show(data);
  expect(document.querySelector('img, button')).toBeNull();
  expect(document.body.textContent).toMatch(/Image image\/png, .* cannot be shown/);
});

test('a large one waits until it is asked for', async () => {
  await show(png('\0\0\x20\0', 5 * 1024 * 1024));
  expect(document.querySelector('img')).toBeNull();
  document.querySelector('button')?.click();
  flushSync();
  expect(document.querySelector('img')).not.toBeNull();
});

test('one is named where what measures it cannot be had', async () => {
  vi.doMock('./pixels', () => {
    throw new Error('gone');
  });
  await show(png('\0\0\x20\0'));
  vi.doUnmock('./pixels');
  expect(document.querySelector('img, button')).toBeNull();
  expect(document.body.textContent).toMatch(/Image image\/png, .* cannot be shown/);
});
