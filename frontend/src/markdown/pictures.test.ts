import { afterEach, beforeAll, expect, test, vi } from 'vitest';
import { whole } from './blocks';
import { extras } from './late';
import { showPictures } from './pictures';
import type { Places } from './places';
import { html, rendering } from './render';

beforeAll(() => extras.load());
afterEach(() => document.body.replaceChildren());

/** A PNG's first bytes with a size, which is all that is read of it. */
function png(width: number, height: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(33);
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]);
  new DataView(bytes.buffer).setUint32(16, width);
  new DataView(bytes.buffer).setUint32(20, height);
  return bytes;
}
const inText = (bytes: Uint8Array) => `data:image/png;base64,${btoa(String.fromCharCode(...bytes))}`;

const files: Record<string, Uint8Array<ArrayBuffer>> = {
  '/work/a.png': png(3, 2),
  '/work/huge.png': png(60_000, 60_000),
};
const asked: string[] = [];
const places: Places = {
  directories: ['/work'],
  existing: (paths) => Promise.resolve(new Set(paths)),
  open: () => undefined,
  picture: (path) => {
    asked.push(path);
    const bytes = files[path];
    return bytes ? Promise.resolve(new Blob([bytes])) : Promise.reject(new Error('gone'));
  },
};

async function shown(source: string): Promise<HTMLElement> {
  asked.length = 0;
  Object.assign(URL, { createObjectURL: () => 'blob:made', revokeObjectURL: vi.fn() });
  HTMLImageElement.prototype.decode = () => Promise.resolve();
  document.body.innerHTML = rendering(places, () => html(...whole(source).blocks.map(({ token }) => token)));
  showPictures(document.body, places);
  await new Promise((done) => setTimeout(done, 60));
  return document.body;
}

test('a picture of the workspace is shown in its link', async () => {
  const image = (await shown('See ![the beam](a.png)')).querySelector('a.path[data-path="a.png"] > img');
  expect([image?.getAttribute('src'), image?.getAttribute('alt')]).toEqual(['blob:made', 'the beam']);
});

test('a picture in the text is shown when its size is known', async () => {
  const host = await shown(`![it](${inText(png(3, 2))}) ![no](${inText(png(60_000, 60_000))})`);
  expect([...host.querySelectorAll('img')].map((one) => one.alt)).toEqual(['it']);
  expect(asked).toEqual([]);
});

test.each([
  ['is too large', '![x](huge.png)', ['/work/huge.png']],
  ['is not there', '![x](none.png)', ['/work/none.png']],
  ['is no picture by its name', '![x](a.svg)', []],
  ['is outside', '![x](../../etc/a.png)', []],
  ['is elsewhere', '![x](https://example.com/a.png)', []],
  ['has another type', '![x](data:image/svg+xml;base64,AAAA)', []],
])('a picture that %s is a link or a name', async (_, source, fetched) => {
  expect((await shown(source)).querySelector('img')).toBeNull();
  expect(asked).toEqual(fetched);
});
