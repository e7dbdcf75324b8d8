import { saveFile } from '../shell/save';
import { surface } from '../shell/wails';
import type { Source } from './outputs';
import { plain } from './output';

// Pages of a text that the page has whole. Offsets are in UTF-16 units.

const longest = 32_768;
const mostMatches = 1_000;

function count(text: string): number {
  let n = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) n++;
  return n;
}

/** Returns the end of a page: behind a line, or else behind a character. */
function endOf(text: string, from: number): number {
  if (text.length - from <= longest) return text.length;
  const line = text.lastIndexOf('\n', from + longest - 1) + 1;
  if (line > from + longest / 2) return line;
  const end = from + longest;
  return /[\uDC00-\uDFFF]/.test(text.charAt(end)) ? end - 1 : end;
}

function startOf(text: string, to: number): number {
  if (to <= longest) return 0;
  const line = text.indexOf('\n', to - longest) + 1;
  return line > 0 && line < to - longest / 2 ? line : to - longest;
}

export function sourceOf(text: string): Source {
  const lines = count(text) + (text === '' || text.endsWith('\n') ? 0 : 1);
  return {
    page: (offset) => {
      const end = endOf(text, offset);
      return Promise.resolve({
        text: text.slice(offset, end),
        offset,
        previous: startOf(text, offset),
        size: text.length,
        line: count(text.slice(0, offset)) + 1,
        lines,
        ...(end < text.length ? { next: end } : {}),
      });
    },
    find: (query) => {
      const items = [];
      let offset = 0;
      const wanted = query.toLowerCase();
      for (const [n, line] of text.split('\n').entries()) {
        const shown = plain(line);
        if (shown.toLowerCase().includes(wanted)) {
          if (items.length === mostMatches) return Promise.resolve({ items, more: true });
          items.push({ offset, line: n + 1, text: shown });
        }
        offset += line.length + 1;
      }
      return Promise.resolve({ items });
    },
    // The window's engine ignores downloads.
    save:
      surface() === 'window'
        ? undefined
        : () => {
            saveFile('output.txt', new Blob([text], { type: 'text/plain' }));
            return Promise.resolve('output.txt');
          },
  };
}
