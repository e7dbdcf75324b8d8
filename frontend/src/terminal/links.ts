import type { IBuffer, ILinkProvider } from '@xterm/xterm';
import { filesIn } from '../content/found';
import { openBy, type Places } from '../markdown/places';

// Links to the files that a terminal shows.

/** Rows of a line that is wrapped, before and behind a row, that are read. */
const most = 20;

interface Cell {
  x: number;
  y: number;
}

/** Returns the whole line of which a row, counted from 1, is a part, with the cell of each character. */
export function lineAt(
  buffer: Pick<IBuffer, 'getLine'>,
  row: number,
): { text: string; cells: readonly Cell[] } {
  let from = row - 1;
  while (from > 0 && row - from <= most && buffer.getLine(from)?.isWrapped) from--;
  let text = '';
  const cells: Cell[] = [];
  for (let y = from; y <= row - 1 + most; y++) {
    const line = buffer.getLine(y);
    if (!line || (y > from && !line.isWrapped)) break;
    for (let x = 0; x < line.length; x++) {
      const cell = line.getCell(x);
      if (!cell || cell.getWidth() === 0) continue; // the second half of a wide character
      const chars = cell.getChars() || ' ';
      text += chars;
      for (let n = 0; n < chars.length; n++) cells.push({ x: x + 1, y: y + 1 });
    }
  }
  return { text, cells };
}

/** Returns the provider of the links to files, for xterm. */
export function fileLinks(buffer: () => Pick<IBuffer, 'getLine'>, places: Places): ILinkProvider {
  return {
    provideLinks(row, give) {
      const { text, cells } = lineAt(buffer(), row);
      void filesIn(text, places).then((links) => {
        const found = links.flatMap(({ start, end, file, line }) => {
          const [first, last] = [cells[start], cells[end - 1]];
          return first && last && first.y <= row && last.y >= row
            ? [
                {
                  range: { start: first, end: last },
                  text: text.slice(start, end),
                  activate: (event: MouseEvent) => openBy(event, places, file, line),
                },
              ]
            : [];
        });
        give(found.length > 0 ? found : undefined);
      });
    },
  };
}
