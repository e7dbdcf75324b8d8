import { diffTexts, type Line } from './diff';

// Compares two texts and returns all lines of both, with the changed words marked: a command line is a single line, however long.

export interface Part {
  text: string;
  changed: boolean;
}

export interface Row {
  kind: 'same' | 'add' | 'remove';
  parts: Part[];
}

export function changedRows(before: string, after: string): Row[] {
  const lines = diffTexts(before, after, Infinity).lines;
  const rows: Row[] = [];
  for (let at = 0; at < lines.length;) {
    const removed = run(lines, at, 'remove');
    const added = run(lines, at + removed.length, 'add');
    if (removed.length + added.length === 0) {
      const line = lines[at++];
      if (line?.kind === 'same') rows.push({ kind: 'same', parts: [{ text: line.text, changed: false }] });
      continue;
    }
    at += removed.length + added.length;
    // Equal numbers of removed and added lines are compared by words. Otherwise the whole lines count as changed.
    const pairs = removed.map((text, index) => words(text, added[index] ?? ''));
    const partsOf = (text: string, index: number, side: 0 | 1) =>
      removed.length === added.length ? (pairs[index]?.[side] ?? []) : [{ text, changed: false }];
    removed.forEach((text, index) => rows.push({ kind: 'remove', parts: partsOf(text, index, 0) }));
    added.forEach((text, index) => rows.push({ kind: 'add', parts: partsOf(text, index, 1) }));
  }
  return rows;
}

function run(lines: readonly Line[], from: number, kind: 'add' | 'remove'): string[] {
  const texts: string[] = [];
  for (let line = lines[from]; line?.kind === kind; line = lines[from + texts.length]) texts.push(line.text);
  return texts;
}

/** Compares two lines by words. */
function words(before: string, after: string): [Part[], Part[]] {
  const split = (text: string) => text.split(/(?<=\s)(?=\S)/);
  const found = diffTexts(split(before).join('\n'), split(after).join('\n'), Infinity).lines;
  const side = (kind: 'add' | 'remove') =>
    found.flatMap((line): Part[] => {
      if (line.kind !== 'same' && line.kind !== kind) return [];
      return [{ text: line.text, changed: line.kind === kind }];
    });
  return [side('remove'), side('add')];
}
