import { afterEach, expect, test, vi } from 'vitest';
import { nameBlocks } from './blockheads';
import type { Places, Writing } from './places';

let end: () => void = () => undefined;
afterEach(() => {
  end();
  document.body.replaceChildren();
});

HTMLDialogElement.prototype.showModal = function () {
  this.open = true;
};

class Changed extends Error {}

/** Shows a block of code beside files, of which "/app/src/a.ts" exists. */
function shown(info: string, code: string, more: Partial<Places> = {}) {
  const files = new Map([['/app/src/a.ts', 'one\r\ntwo\r\n']]);
  let version = 1;
  const writing: Writing = {
    read: async (path) => {
      const text = files.get(path);
      return text === undefined ? undefined : { version: String(version), text };
    },
    write: async (path, text, over) => {
      if (over === undefined ? files.has(path) : over !== String(version)) throw new Changed();
      files.set(path, text);
      return String(++version);
    },
    isOther: (thrown) => thrown instanceof Changed,
  };
  const places: Places = {
    directories: ['/app'],
    existing: async (paths) => new Set(paths.filter((path) => files.has(path))),
    open: () => undefined,
    writing,
    ...more,
  };
  const host = document.createElement('div');
  const block = document.createElement('div');
  block.className = 'code bare';
  block.dataset['info'] = info;
  block.innerHTML = '<div class="code-head"><span>ts</span><button></button></div><pre><code></code></pre>';
  (block.querySelector('code') as Element).textContent = `${code}\n`;
  host.append(block);
  document.body.append(host);
  end = nameBlocks(host, places);
  const by = { change: (text: string) => files.set('/app/src/a.ts', text) && version++ };
  return { host, block, files, by };
}

const button = (name: string) =>
  [...document.querySelectorAll('button')].find(({ textContent }) => textContent?.trim() === name);
async function press(name: string) {
  await vi.waitFor(() => expect(button(name), `the button ${name}`).toBeTruthy());
  button(name)?.click();
}
const words = () => document.querySelector('dialog')?.textContent ?? '';

test('a block is written into its file as the file ends its lines, and put back', async () => {
  const { block, files } = shown('ts src/a.ts', 'one\n2');
  await press('Apply');
  await vi.waitFor(() => expect(words()).toContain('Apply to src/a.ts'));
  await vi.waitFor(() => expect(document.querySelectorAll('dialog .add, dialog .remove').length).toBe(2));
  expect(files.get('/app/src/a.ts')).toBe('one\r\ntwo\r\n');
  [...document.querySelectorAll<HTMLButtonElement>('dialog button')].at(-1)?.click();
  await vi.waitFor(() => expect(files.get('/app/src/a.ts')).toBe('one\r\n2\r\n'));
  await vi.waitFor(() => expect(document.querySelector('dialog')).toBeNull());
  expect(block.textContent).toContain('Applied');
  expect(block.querySelector('[data-file]')?.getAttribute('data-file')).toBe('/app/src/a.ts');
  await press('Undo');
  await vi.waitFor(() => expect(files.get('/app/src/a.ts')).toBe('one\r\ntwo\r\n'));
  await vi.waitFor(() => expect(block.textContent).toContain('Put back'));
});

test('a file that changed since it was shown is not written, and the new difference is', async () => {
  const { files, by } = shown('ts src/a.ts', 'one\n2');
  await press('Apply');
  await vi.waitFor(() => expect(document.querySelector('dialog .add')).toBeTruthy());
  by.change('other\n');
  [...document.querySelectorAll<HTMLButtonElement>('dialog button')].at(-1)?.click();
  await vi.waitFor(() => expect(words()).toContain('The file has changed since you looked'));
  expect(words()).toContain('other');
  expect(files.get('/app/src/a.ts')).toBe('other\n');
  [...document.querySelectorAll<HTMLButtonElement>('dialog button')].at(-1)?.click();
  await vi.waitFor(() => expect(files.get('/app/src/a.ts')).toBe('one\n2\n'));
});

test('a file that is not there is called new, and made', async () => {
  const { block, files } = shown('ts', '// src/b.ts\nx');
  await vi.waitFor(() => expect(block.textContent).toContain('New file'));
  expect(block.querySelector('[data-file]')).toBeNull();
  await press('Apply');
  await vi.waitFor(() => expect(words()).toContain('Once created it stays'));
  await press('Create file');
  await vi.waitFor(() => expect(files.get('/app/src/b.ts')).toBe('x\n'));
  await vi.waitFor(() => expect(block.textContent).toContain('Created'));
  expect(button('Undo')).toBeUndefined();
  expect(block.querySelector('[data-file]')).toBeTruthy();
});

test('a part of a file can be opened, and not applied', async () => {
  const { block } = shown('ts src/a.ts', 'one\n// ...\n2');
  await vi.waitFor(() => expect(block.querySelector('[data-file]')).toBeTruthy());
  expect(button('Apply')).toBeUndefined();
});

test.each([
  ['where nothing may be written', 'ts src/a.ts', { writing: undefined }, true],
  ['on another machine', 'ts src/a.ts', { directories: [] }, false],
  ['outside of the directories', 'ts ../b/a.ts', {}, false],
  ['of a name that may be anything', 'node.js', {}, false],
] as const)('%s there is no Apply', async (_, info, more, linked) => {
  const { block } = shown(info, 'x', more);
  if (linked) await vi.waitFor(() => expect(block.querySelector('[data-file]')).toBeTruthy());
  else await new Promise((done) => setTimeout(done, 60));
  expect(button('Apply')).toBeUndefined();
  expect(block.querySelector('[data-file]') !== null).toBe(linked);
});

test('a block that leaves the page is as it was', async () => {
  const { block } = shown('ts src/a.ts', 'one');
  await vi.waitFor(() => expect(block.querySelector('.named')).toBeTruthy());
  expect(block.className).toBe('code');
  end();
  expect(block.className).toBe('code bare');
  expect(block.querySelector('.code-head')?.innerHTML).toBe('<span>ts</span><button></button>');
});
