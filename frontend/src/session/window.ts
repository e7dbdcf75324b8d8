// Which part of the items held is mounted. Mounting all of a long conversation takes seconds in every engine, so a slice of the
// tail is, and the slice moves when its end comes near.

export interface Slice {
  from: number;
  to: number;
}

export const tailSize = 200;
export const step = 80;
export const most = 480;

/** The slice while the tail is followed. It is cut in steps, so that not every new entry removes an old one. */
export function follow(slice: Slice, length: number): Slice {
  const grown = length - slice.from;
  if (grown > tailSize + step || slice.from > length)
    return { from: Math.max(0, length - tailSize), to: length };
  return { from: slice.from, to: length };
}

/** The slice while the person reads further up: it grows below until it is full, and nothing is removed above. */
export function stay(slice: Slice, length: number, atEnd: boolean): Slice {
  const to = atEnd ? Math.min(length, slice.from + most) : Math.min(slice.to, length);
  return { from: Math.min(slice.from, to), to };
}

/** Moves the slice up. */
export function earlier(slice: Slice): Slice {
  const from = Math.max(0, slice.from - step);
  return { from, to: Math.min(slice.to, from + most) };
}

/** Moves the slice down. */
export function later(slice: Slice, length: number): Slice {
  const to = Math.min(length, slice.to + step);
  return { from: Math.max(slice.from, to - most), to };
}

/** The slice around an item. */
export function around(index: number, length: number): Slice {
  return { from: Math.max(0, index - tailSize / 2), to: Math.min(length, index + tailSize / 2) };
}

/** The slice after `count` items were put before all others. */
export function shift(slice: Slice, count: number): Slice {
  return { from: Math.max(0, slice.from + count), to: Math.max(0, slice.to + count) };
}
