import type { ILink } from '@xterm/xterm';
import { expect, test, vi } from 'vitest';
import type { Places } from '../markdown/places';
import { fileLinks, lineAt } from './links';

/** A buffer with rows of a width; a row that begins with "\\" goes on from the one before. A wide character takes two cells. */
function bufferOf(width: number, ...rows: string[]) {
  const lines = rows.map((row) => {
    const cells = [...row.replace(/^\\/, '')].flatMap((char) =>
      char > '\u3000'
        ? [
            { getChars: () => char, getWidth: () => 2 },
            { getChars: () => '', getWidth: () => 0 },
          ]
        : [{ getChars: () => char, getWidth: () => 1 }],
    );
    while (cells.length < width) cells.push({ getChars: () => '', getWidth: () => 1 });
    return { isWrapped: row.startsWith('\\'), length: width, getCell: (x: number) => cells[x] };
  });
  return { getLine: (y: number) => lines[y] } as unknown as Parameters<typeof lineAt>[0];
}

test('a line is read as a whole, with the cells of its characters', () => {
  const buffer = bufferOf(4, 'a', 'abcd', '\\ef日', 'x');
  const { text, cells } = lineAt(buffer, 3);
  expect(text).toBe('abcdef日');
  expect([cells[0], cells[5], cells[6]]).toEqual([
    { x: 1, y: 2 },
    { x: 2, y: 3 },
    { x: 3, y: 3 },
  ]);
  expect(lineAt(buffer, 2).text).toBe(text);
  expect(lineAt(buffer, 1).text).toBe('a   ');
});

test('the files of a line are links, which open beside the conversation or in the editor', async () => {
  const opened = vi.fn();
  const edited = vi.fn();
  const places: Places = {
    directories: ['/app'],
    existing: (paths) => Promise.resolve(new Set(paths.filter((path) => path.endsWith('a.go')))),
    open: opened,
    edit: edited,
  };
  const buffer = bufferOf(12, 'see src/a.go', '\\:31 b.go:2');
  const links = await new Promise<ILink[] | undefined>((give) =>
    fileLinks(() => buffer, places).provideLinks(2, give),
  );
  expect(links?.map(({ text, range }) => [text, range])).toEqual([
    ['src/a.go:31', { start: { x: 5, y: 1 }, end: { x: 3, y: 2 } }],
  ]);
  links?.[0]?.activate(new MouseEvent('click'), '');
  expect(opened).toHaveBeenCalledWith('/app/src/a.go', 31);
  links?.[0]?.activate(new MouseEvent('click', { ctrlKey: true }), '');
  expect(edited).toHaveBeenCalledWith('/app/src/a.go', 31);
});
