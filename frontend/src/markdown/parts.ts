import type { Tokens } from 'marked';
import { pieces, type Block, type Blocks, type Piece } from './blocks';

// Splits a long message into parts. A part far from the visible area can leave the page, and while text streams only the last part is
// rendered again.

export interface Part {
  /** The position of the first block, which is the part's identity. */
  readonly key: number;
  readonly pieces: readonly Piece[];
  /** The part is complete and cannot change. */
  readonly closed: boolean;
  /** The estimated height in pixels, before the part is mounted. */
  readonly height: number;
}

interface Cut extends Part {
  readonly end: number;
  readonly last: Block | undefined;
}

/** The largest number of elements in a part. A single block may have more. */
const heavy = 200;
/** The largest height of a part in pixels. A single block may be higher. */
const high = 1_200;

/** Estimates the number of elements of a block and its height in pixels. */
function sizeOf({ token, raw }: Block): { weight: number; height: number } {
  switch (token.type) {
    case 'space':
    case 'def':
      return { weight: 0, height: 0 };
    case 'code': {
      const lines = raw.split('\n').length - 1;
      return { weight: 6 + 8 * lines, height: 56 + 18 * lines };
    }
    case 'table': {
      const { header, rows } = token as Tokens.Table;
      return { weight: (rows.length + 1) * (header.length + 1), height: 12 + 35 * (rows.length + 1) };
    }
    default: {
      const lines = raw.split('\n');
      const rows = lines.reduce((sum, line) => sum + Math.ceil(line.length / 74), 0);
      return { weight: lines.length + raw.length / 100, height: 10 + 22 * rows };
    }
  }
}

/** Splits blocks into parts. Closed parts of the earlier list are reused. */
export function inParts(before: readonly Part[], of: Blocks, streams: boolean): readonly Part[] {
  const { blocks, finished } = of;
  const list: Cut[] = [];
  for (const part of before as readonly Cut[]) {
    if (!part.closed || blocks[part.end - 1] !== part.last) break;
    list.push(part);
  }
  for (let from = list.at(-1)?.end ?? 0; from < blocks.length;) {
    let end = from;
    let weight = 0;
    let height = 0;
    for (; end < blocks.length; end++) {
      const next = sizeOf(blocks[end] as Block);
      if (end > from && (weight + next.weight > heavy || height + next.height > high)) break;
      weight += next.weight;
      height += next.height;
    }
    list.push({
      key: from,
      pieces: pieces(blocks.slice(from, end), streams),
      closed: end < blocks.length && end <= finished,
      height,
      end,
      last: blocks[end - 1],
    });
    from = end;
  }
  return list;
}
