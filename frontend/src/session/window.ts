import type { ToolCall } from '../api/records';
import { briefLines } from '../content/diff';
import { parts } from '../content/tool';
import type { Item } from '../state/transcript';
import { beginOf, endOf, folds, lastFailed } from './work';

// Chooses the part of the held items that is mounted. Mounting a whole long session takes seconds in every engine, so a slice of the tail
// is mounted, which moves when the person comes near its end. The slice is measured in elements: many short messages, or few long ones. A run
// of work is one row, so it is mounted as a whole; folded, it is light however long it is.

export interface Slice {
  from: number;
  to: number;
}

/** The weight that is mounted when a session opens. While its tail is followed, the slice grows by a step before it is cut. */
export const opening = 450;
/** The weight that is added near an end. It is small enough for a frame, and so is a single heavy row. */
export const step = 150;
/** The largest mounted weight. The items farthest from the person's place are removed first. */
export const most = 1_500;
/** The least number of mounted rows, however heavy; greatest is the largest number, however light. */
const fewest = 4;
const greatest = 200;
/** The largest weight of a long message, of which a part sleeps. */
const longest = 360;

const weights = new WeakMap<Item, { entry: unknown; length: number; weight: number }>();

/** Estimates the number of elements of an item. */
export function weightOf(item: Item): number {
  const held = weights.get(item);
  if (held && held.entry === item.entry && held.length === item.text.length) return held.weight;
  const weight = weigh(item);
  weights.set(item, { entry: item.entry, length: item.text.length, weight });
  return weight;
}

function weigh({ entry, text }: Item): number {
  switch (entry.kind) {
    case 'user':
      return 6;
    case 'agent':
      // The part of a long message that is out of view sleeps.
      return Math.min(6 + text.length / 60 + 8 * codeLines(text), longest);
    case 'tool':
      return entry.tool?.status === 'failed' ? 60 + diffLines(entry.tool) * 12 : 20;
    case 'plan':
      return 8 + 8 * (entry.plan?.length ?? 0);
    default:
      return 14;
  }
}

/** Counts the visible lines of a call's differences. A failed call is open. */
function diffLines(tool: ToolCall): number {
  return parts(tool).reduce(
    (sum, part) => sum + (part.kind === 'diff' ? Math.min(part.diff.lines.length, briefLines) : 0),
    0,
  );
}

/** Counts the lines of code, where every word has an element of its own for its colour. */
function codeLines(text: string): number {
  let lines = 0;
  for (let at = text.indexOf('```'), inside = true; at >= 0; inside = !inside) {
    const next = text.indexOf('```', at + 3);
    if (inside) for (let i = at; i >= 0 && (next < 0 || i < next); i = text.indexOf('\n', i + 1)) lines++;
    at = next;
  }
  return lines;
}

/** The elements of the head of a folded run. */
const headWeight = 16;

/** Estimates the number of elements of the row of some items. */
function rowWeight(items: readonly Item[]): number {
  const folded = items.length > 1 && folds(items);
  const visible = folded ? lastFailed(items) : items;
  return visible.reduce((sum, item) => sum + weightOf(item), folded ? headWeight : 0);
}

/** Returns the first index from which the rows before `to`, at least `least` of them, weigh at most `limit`. */
function before(items: readonly Item[], to: number, limit: number, least = fewest): number {
  let from = to;
  for (let sum = 0, rows = 0; from > 0 && rows < greatest; rows++) {
    const begin = beginOf(items, from - 1);
    sum += rowWeight(items.slice(begin, from));
    if (sum > limit && rows >= least) break;
    from = begin;
  }
  return from;
}

/** Returns the index up to which the rows from `from` on, at least `least` of them, weigh at most `limit`. */
function after(items: readonly Item[], from: number, limit: number, least = fewest): number {
  let to = from;
  for (let sum = 0, rows = 0; to < items.length && rows < greatest; rows++) {
    const end = endOf(items, to);
    sum += rowWeight(items.slice(to, end));
    if (sum > limit && rows >= least) break;
    to = end;
  }
  return to;
}

/** Returns the number of rows between two indices. */
export function rowsBetween(items: readonly Item[], from: number, to: number): number {
  let rows = 0;
  for (let at = from; at < to; at = endOf(items, at)) rows++;
  return rows;
}

/** Returns the slice while the tail is followed. The slice is cut in steps, so that not every new entry removes an old one. */
export function follow(slice: Slice, items: readonly Item[], size = opening): Slice {
  const to = items.length;
  const held = slice.to > slice.from && slice.from < to;
  if (held && slice.from >= before(items, to, size + step) && slice.from <= before(items, to, size))
    return { from: slice.from, to };
  return { from: before(items, to, size), to };
}

/** Returns the slice while the person reads further up. The slice grows below up to its limit; nothing is removed above. */
export function stay(slice: Slice, items: readonly Item[], atEnd: boolean): Slice {
  const from = Math.min(slice.from, items.length);
  const to = Math.min(slice.to, items.length);
  return { from, to: atEnd ? Math.max(to, after(items, from, most)) : Math.max(from, to) };
}

/** Moves the slice up. The visible items and their neighbours stay. */
export function earlier(slice: Slice, items: readonly Item[], seen: Slice): Slice {
  const from = before(items, slice.from, step, 1);
  return { from, to: Math.min(slice.to, Math.max(after(items, from, most), seen.to)) };
}

/** Moves the slice down. The visible items and their neighbours stay. */
export function later(slice: Slice, items: readonly Item[], seen: Slice): Slice {
  const to = after(items, slice.to, step, 1);
  return { from: Math.max(slice.from, Math.min(before(items, to, most), seen.from)), to };
}

/** Returns the slice around an item. */
export function around(index: number, items: readonly Item[]): Slice {
  const begin = beginOf(items, index);
  return { from: before(items, begin, opening / 2), to: after(items, begin, opening / 2) };
}

/** Returns the slice after `count` items were added before all others. */
export function shift(slice: Slice, count: number): Slice {
  return { from: Math.max(0, slice.from + count), to: Math.max(0, slice.to + count) };
}
