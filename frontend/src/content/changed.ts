import type { Range } from './coloured';
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

/** Longer lines are not compared by words. */
const longestLine = 2_000;
/** Of lines that have less in common, words are not marked: they are other lines. */
const leastShare = 0.4;

/** Returns the changed words of two lines, as ranges in each; undefined for lines that have little in common. */
export function changedWords(before: string, after: string): readonly [Range[], Range[]] | undefined {
  if (before.length > longestLine || after.length > longestLine) return undefined;
  const split = (text: string) => text.match(/[\p{L}\p{N}_]+|\s+|[^]/gu) ?? [];
  const found = diffTexts(split(before).join('\n'), split(after).join('\n'), Infinity).lines;
  const sides: [Range[], Range[]] = [[], []];
  const at: [number, number] = [0, 0];
  let same = 0;
  for (const line of found) {
    if (line.kind !== 'same' && line.kind !== 'add' && line.kind !== 'remove') continue;
    const size = line.text.length;
    if (line.kind === 'same' && line.text.trim() !== '') same += size;
    for (const side of [0, 1] as const) {
      if (line.kind === (side === 0 ? 'add' : 'remove')) continue;
      if (line.kind !== 'same') mark(sides[side], at[side], at[side] + size);
      at[side] += size;
    }
  }
  const whole = Math.max(before.trim().length, after.trim().length);
  return same >= whole * leastShare && sides.flat().length > 0 ? sides : undefined;
}

function mark(ranges: Range[], from: number, to: number) {
  const last = ranges.at(-1);
  if (last?.[1] === from) ranges[ranges.length - 1] = [last[0], to];
  else ranges.push([from, to]);
}

/** Returns the changed words of the lines of a difference where as many added lines follow removed lines. */
export function wordsOf<T extends { kind: string; text?: string }>(
  lines: readonly T[],
): ReadonlyMap<T, readonly Range[]> {
  const marked = new Map<T, readonly Range[]>();
  for (let at = 0; at < lines.length;) {
    const went = lengthOf(lines, at, 'remove');
    const came = lengthOf(lines, at + went, 'add');
    for (let n = 0; n < went && went === came; n++) {
      const [before, after] = [lines[at + n], lines[at + went + n]];
      const words = before && after && changedWords(before.text ?? '', after.text ?? '');
      if (!words) continue;
      marked.set(before, words[0]);
      marked.set(after, words[1]);
    }
    at += Math.max(1, went + came);
  }
  return marked;
}

function lengthOf(lines: readonly { kind: string }[], from: number, kind: string): number {
  let n = 0;
  while (lines[from + n]?.kind === kind) n++;
  return n;
}
