import { languageOf, type Line } from '../markdown/highlight';
import type { FileDiff, Hunk } from './calls';
import type { Comment } from './comments';

// The server's hunks as rows to show, one or two texts a row.

export interface Cell {
  number: number;
  text: string;
  noNewline: boolean;
}

export interface Row {
  /** ± is a line that took another one's place, of two columns. */
  op: ' ' | '+' | '-' | '±';
  old?: Cell;
  new?: Cell;
}

/** The rows of one column: what went stands above what came. */
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

/** The rows of two columns: what went stands beside what came. */
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
      // Lines that went after others came took the place of none of them.
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

/** Whether a comment is on this row, and the row still what it was written on. */
export function stands(comment: Comment, row: Row): boolean {
  const cell = comment.side === 'new' ? row.new : row.old;
  return cell?.number === comment.line && cell.text === comment.code;
}

export function countOf(hunk: Hunk): { added: number; removed: number } {
  const of = (op: string) => hunk.lines.filter((line) => line.op === op).length;
  return { added: of('+'), removed: of('-') };
}

/** Whether every line ends as on Windows, which is no news then. */
export function windowsEnds(hunks: readonly Hunk[]): boolean {
  const lines = hunks.flatMap((hunk) => hunk.lines);
  return lines.length > 0 && lines.every((line) => line.text.endsWith('\r') || line.noNewline === true);
}

/** The grammar for a file of this name. */
export function languageOfPath(path: string): string | undefined {
  const name = (path.split('/').at(-1) ?? '').toLowerCase();
  if (name === 'makefile' || name === 'dockerfile') return languageOf(name);
  const dot = name.lastIndexOf('.');
  return dot < 0 ? undefined : languageOf(name.slice(dot + 1));
}

/** Colours by side and number of line. */
export interface Colours {
  old: ReadonlyMap<number, Line>;
  new: ReadonlyMap<number, Line>;
}

/** What has to be coloured: whole texts where they are known, since a line alone does not tell that it stands in a comment. */
export function snippets(file: FileDiff): { side: 'old' | 'new'; from: number; text: string }[] {
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

/** The colours of a file's lines; undefined where it has none. */
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

/** The colours of a line, unless they are those of another text: the file went on while the page held what it was. */
export function partsOf(line: Line | undefined, text: string): Line | undefined {
  if (!line) return undefined;
  const plain = text.endsWith('\r') ? text.slice(0, -1) : text;
  return line.map(([, piece]) => piece).join('') === plain ? line : undefined;
}
