import { languageOfPath, type Line } from '../markdown/highlight';
import type { FileDiff, Hunk } from '../api/records';
import { wordsOf } from '../content/changed';
import type { Range } from '../content/coloured';
import type { Comment } from './comments';

// Converts the server's hunks to rows with one or two cells.

export interface Cell {
  number: number;
  text: string;
  noNewline: boolean;
}

export interface Row {
  /** In two columns, ± marks a line that replaces another. */
  op: ' ' | '+' | '-' | '±';
  old?: Cell;
  new?: Cell;
}

/** Returns the rows of one column: removed lines above added lines. */
export function unified(hunk: Hunk): Row[] {
  let before = hunk.oldStart;
  let after = hunk.newStart;
  return hunk.lines.map(({ op, text, noNewline = false }): Row => {
    switch (op) {
      case '+':
        return { op, new: { number: after++, text, noNewline } };
      case '-':
        return { op, old: { number: before++, text, noNewline } };
      case ' ':
        return {
          op,
          old: { number: before++, text, noNewline },
          new: { number: after++, text, noNewline },
        };
    }
  });
}

/** Returns the rows of two columns: removed lines beside added lines. */
export function split(hunk: Hunk): Row[] {
  const rows: Row[] = [];
  let went: Cell[] = [];
  let came: Cell[] = [];
  const flush = () => {
    for (let at = 0; at < Math.max(went.length, came.length); at++) {
      const [left, right] = [went[at], came[at]];
      if (left && right) rows.push({ op: '±', old: left, new: right });
      else if (left) rows.push({ op: '-', old: left });
      else if (right) rows.push({ op: '+', new: right });
    }
    went = [];
    came = [];
  };
  for (const row of unified(hunk)) {
    if (row.op === '-' && row.old) {
      // Removed lines that follow added lines begin a new block.
      if (came.length > 0) flush();
      went.push(row.old);
    } else if (row.op === '+' && row.new) came.push(row.new);
    else {
      flush();
      rows.push(row);
    }
  }
  flush();
  return rows;
}

/** Reports whether a comment belongs to this row and the row's text is still the text that was commented. */
export function stands(comment: Comment, row: Row): boolean {
  const cell = comment.side === 'new' ? row.new : row.old;
  return cell?.number === comment.line && cell.text === comment.code;
}

export function countOf(hunk: Hunk): { added: number; removed: number } {
  const of = (op: string) => hunk.lines.filter((line) => line.op === op).length;
  return { added: of('+'), removed: of('-') };
}

/** Reports whether every line ends with CRLF. Then the line ends are not marked. */
export function windowsEnds(hunks: readonly Hunk[]): boolean {
  const lines = hunks.flatMap((hunk) => hunk.lines);
  return lines.length > 0 && lines.every((line) => line.text.endsWith('\r') || line.noNewline === true);
}

/** Coloured lines by side and line number. */
export interface Colours {
  old: ReadonlyMap<number, Line>;
  new: ReadonlyMap<number, Line>;
}

/**
 * Returns the texts to colour. Where the whole file is known it is coloured whole, because a single line does not show that it lies in a
 * comment.
 */
function snippets(file: FileDiff): { side: 'old' | 'new'; from: number; text: string }[] {
  if (file.before !== undefined || file.after !== undefined)
    return [
      { side: 'old' as const, from: 1, text: file.before ?? '' },
      { side: 'new' as const, from: 1, text: file.after ?? '' },
    ].filter(({ text }) => text !== '');
  return file.hunks.flatMap((hunk) => {
    const of = (op: '+' | '-') =>
      hunk.lines
        .filter((line) => line.op === op || line.op === ' ')
        .map((line) => line.text)
        .join('\n');
    return [
      { side: 'old' as const, from: hunk.oldStart, text: of('-') },
      { side: 'new' as const, from: hunk.newStart, text: of('+') },
    ].filter(({ text }) => text !== '');
  });
}

type Paint = (text: string, language: string) => Promise<readonly Line[] | undefined>;

/** Returns the coloured lines of a file; undefined for a file without a grammar. */
export async function coloursOf(file: FileDiff, paint: Paint): Promise<Colours | undefined> {
  const language = languageOfPath(file.path);
  if (!language) return undefined;
  const found = { old: new Map<number, Line>(), new: new Map<number, Line>() };
  await Promise.all(
    snippets(file).map(async ({ side, from, text }) => {
      const lines = await paint(text, language);
      lines?.forEach((line, at) => found[side].set(from + at, line));
    }),
  );
  return found.old.size + found.new.size > 0 ? found : undefined;
}

/** Returns the changed words of rows, by cell. */
export function wordsOfRows(rows: readonly Row[]): ReadonlyMap<Cell, readonly Range[]> {
  const cells = rows.flatMap((row): { kind: string; text: string; cell?: Cell | undefined }[] => {
    if (row.op === '±' && row.old && row.new)
      return [
        { kind: 'remove', text: row.old.text, cell: row.old },
        { kind: 'add', text: row.new.text, cell: row.new },
        { kind: 'same', text: '' },
      ];
    const kind = row.op === '-' ? 'remove' : row.op === '+' ? 'add' : 'same';
    const cell = row.op === '-' ? row.old : row.new;
    return [{ kind, text: cell?.text ?? '', cell }];
  });
  const found = wordsOf(cells);
  return new Map([...found].flatMap(([{ cell }, ranges]) => (cell ? [[cell, ranges] as const] : [])));
}
