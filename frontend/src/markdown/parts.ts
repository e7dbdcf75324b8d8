import type { Tokens } from 'marked';
import { pieces, type Block, type Blocks, type Piece } from './blocks';

// A long message is mounted in parts: what stands far from what is read can leave the page, and while text streams in, only the last
// part is looked at again.

export interface Part {
  /** The place of its first block, and so its identity. */
  readonly key: number;
  readonly pieces: readonly Piece[];
  /** Nothing will be added to it, and nothing in it can change. */
  readonly closed: boolean;
  /** About how many pixels high it is, before anybody has seen it. */
  readonly height: number;
}

interface Cut extends Part {
  readonly end: number;
  readonly last: Block | undefined;
}

/** How much a part holds, in elements; one block may be more. */
const heavy = 200;
/** And how high it is at the most, unless one block is higher. */
const high = 1_200;

/** About how many elements a block is, and how many pixels high. */
function sizeOf({ token, raw }: Block): { weight: number; height: number } {
  switch (token.type) {
    case 'space':
    case 'def':
      return { weight: 0, height: 0 };
    case 'code': {
      const lines = raw.split('\n').length - 1;
      return { weight: 6 + 8 * lines, height: 46 + 18 * lines };
    }
    case 'table': {
      const { header, rows } = token as Tokens.Table;
      return { weight: (rows.length + 1) * (header.length + 1), height: 8 + 31 * (rows.length + 1) };
    }
    default: {
      const lines = raw.split('\n');
      const rows = lines.reduce((sum, line) => sum + Math.ceil(line.length / 90), 0);
      return { weight: lines.length + raw.length / 100, height: 8 + 24 * rows };
    }
  }
}

/** The blocks in parts; of those before, what is closed is taken over as it is. */
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
