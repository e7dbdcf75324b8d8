import type { ToolCall } from '../api/records';
import { briefLines } from '../content/diff';
import { parts } from '../content/tool';
import type { Item } from './transcript';

// Which part of the items held is mounted. Mounting all of a long conversation takes seconds in every engine, so a slice of the
// tail is, and the slice moves when its end comes near. What counts is how many elements it is on the screen: of short messages many
// are mounted, of long ones few.

export interface Slice {
  from: number;
  to: number;
}

/** What is mounted when a conversation is opened; while its tail is followed it grows by a step before it is cut. */
export const opening = 450;
/** How much comes when an end comes near: little, so that it fits into a frame. */
export const step = 150;
/** The most that is mounted; what is furthest from where the person reads goes first. */
export const most = 1_500;
/** However heavy they are, so many items are mounted at the least, and however light, so many at the most. */
const fewest = 4;
const greatest = 200;
/** What a long message is at the most, wherever in it one is. */
const longest = 360;

const weights = new WeakMap<Item, { entry: unknown; length: number; weight: number }>();

/** About how many elements an item is. */
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
      // What of a long one is not near sleeps.
      return Math.min(6 + text.length / 60 + 8 * codeLines(text), longest);
    case 'tool':
      return entry.tool?.status === 'failed' ? 60 + diffLines(entry.tool) * 4 : 20;
    case 'plan':
      return 8 + 8 * (entry.plan?.length ?? 0);
    default:
      return 14;
  }
}

/** What of its diffs is shown: one that has failed is open. */
function diffLines(tool: ToolCall): number {
  return parts(tool).reduce(
    (sum, part) => sum + (part.kind === 'diff' ? Math.min(part.diff.lines.length, briefLines) : 0),
    0,
  );
}

/** Every word of code has a colour, and so an element, of its own. */
function codeLines(text: string): number {
  let lines = 0;
  for (let at = text.indexOf('```'), inside = true; at >= 0; inside = !inside) {
    const next = text.indexOf('```', at + 3);
    if (inside) for (let i = at; i >= 0 && (next < 0 || i < next); i = text.indexOf('\n', i + 1)) lines++;
    at = next;
  }
  return lines;
}

/** From where on the items before `to` are not heavier than `limit`. */
function before(items: readonly Item[], to: number, limit: number): number {
  let from = to;
  for (let sum = 0; from > 0 && to - from < greatest; from--) {
    const item = items[from - 1];
    if (item) sum += weightOf(item);
    if (sum > limit && to - from >= fewest) break;
  }
  return from;
}

/** Up to where the items from `from` on are not heavier than `limit`. */
function after(items: readonly Item[], from: number, limit: number): number {
  let to = from;
  for (let sum = 0; to < items.length && to - from < greatest; to++) {
    const item = items[to];
    if (item) sum += weightOf(item);
    if (sum > limit && to - from >= fewest) break;
  }
  return to;
}

/** The slice while the tail is followed. It is cut in steps, so that not every new entry removes an old one. */
export function follow(slice: Slice, items: readonly Item[], size = opening): Slice {
  const to = items.length;
  const held = slice.to > slice.from && slice.from < to;
  if (held && slice.from >= before(items, to, size + step) && slice.from <= before(items, to, size))
    return { from: slice.from, to };
  return { from: before(items, to, size), to };
}

/** The slice while the person reads further up: it grows below until it is full, and nothing is removed above. */
export function stay(slice: Slice, items: readonly Item[], atEnd: boolean): Slice {
  const from = Math.min(slice.from, items.length);
  const to = Math.min(slice.to, items.length);
  return { from, to: atEnd ? Math.max(to, after(items, from, most)) : Math.max(from, to) };
}

/** Moves the slice up. What the person sees, and what stands near it, stays. */
export function earlier(slice: Slice, items: readonly Item[], seen: Slice): Slice {
  const from = before(items, slice.from, step);
  return { from, to: Math.min(slice.to, Math.max(after(items, from, most), seen.to)) };
}

/** Moves the slice down. What the person sees, and what stands near it, stays. */
export function later(slice: Slice, items: readonly Item[], seen: Slice): Slice {
  const to = after(items, slice.to, step);
  return { from: Math.max(slice.from, Math.min(before(items, to, most), seen.from)), to };
}

/** The slice around an item. */
export function around(index: number, items: readonly Item[]): Slice {
  return { from: before(items, index, opening / 2), to: after(items, index, opening / 2) };
}

/** The slice after `count` items were put before all others. */
export function shift(slice: Slice, count: number): Slice {
  return { from: Math.max(0, slice.from + count), to: Math.max(0, slice.to + count) };
}
