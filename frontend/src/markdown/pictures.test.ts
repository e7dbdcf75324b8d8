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

/** Shows a text whose pictures of the web are fetched by fetch. Returns the host and how to end it. */
function offered(source: string, webPicture: (address: string) => Promise<Blob>) {
  Object.assign(URL, { createObjectURL: () => 'blob:made', revokeObjectURL: vi.fn() });
  HTMLImageElement.prototype.decode = () => Promise.resolve();
  const here: Places = { ...places, webPicture };
  document.body.innerHTML = rendering(here, () => html(...whole(source).blocks.map(({ token }) => token)));
  return showPictures(document.body, here);
}

test('a picture of the web says whose it is, and is fetched when a person asks, once', async () => {
  const fetch = vi.fn(async () => new Blob([png(3, 2)]));
  const source = '![the lamp](https://xn--bcher-kva.example/lamp.png?a=b)';
  const end = offered(source, fetch);
  await new Promise((done) => setTimeout(done, 20));
  expect(fetch).not.toHaveBeenCalled();
  const host = document.querySelector('.remote');
  expect(host?.querySelector('.host')?.textContent).toBe('xn--bcher-kva.example');
  expect(host?.querySelector('a')?.textContent).toContain('the lamp');
  host?.querySelector('button')?.click();
  await vi.waitFor(() =>
    expect(document.querySelector('.picture a > img')?.getAttribute('alt')).toBe('the lamp'),
  );
  expect(fetch.mock.calls.map(([address]: unknown[]) => address)).toEqual([
    'https://xn--bcher-kva.example/lamp.png?a=b',
  ]);
  expect(document.querySelector('.remote, .picture button')).toBeNull();
  end();
  // The part has left the page, and comes back.
  offered(source, fetch);
  await vi.waitFor(() => expect(document.querySelector('.picture a > img')).toBeTruthy());
  expect(fetch).toHaveBeenCalledTimes(1);
});

test('a picture that is not fetched says why, and can be asked for again', async () => {
  let well = false;
  offered('![x](https://example.com/no.png)', () =>
    well ? Promise.resolve(new Blob([png(60_000, 60_000)])) : Promise.reject(new Error('gone')),
  );
  const button = () => document.querySelector<HTMLButtonElement>('.remote button');
  button()?.click();
  await vi.waitFor(() =>
    expect(document.querySelector('.said')?.textContent).toContain('Something went wrong'),
  );
  expect(button()?.disabled).toBe(false);
  well = true;
  button()?.click();
  await vi.waitFor(() => expect(document.querySelector('.said')?.textContent).toContain('too many pixels'));
  expect(document.querySelector('img')).toBeNull();
});

test.each(['http://example.com/a.png', 'mailto:a@example.com'])('%s is a link as before', (address) => {
  offered(`![x](${address})`, () => Promise.reject(new Error('asked')));
  expect(document.querySelector('.remote')).toBeNull();
  expect(document.querySelector('a')?.getAttribute('href')).toBe(address);
});
