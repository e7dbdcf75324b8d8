// Which blocks were written into their files, as long as the page is open: a block that leaves the page and comes back says so still.

export interface Applied {
  /** The version of the file after the write. */
  readonly version: string;
  /** The text before; undefined for a file that was made. */
  readonly before: string | undefined;
}

/** The number of blocks that are remembered: each holds the text of a file. */
const most = 30;

const blocks = new Map<string, Applied>();
const keyOf = (path: string, code: string) => `${path}\n${code}`;

export function appliedOf(path: string, code: string): Applied | undefined {
  return blocks.get(keyOf(path, code));
}

/** Remembers a write, or forgets it. */
export function remember(path: string, code: string, applied: Applied | undefined): void {
  blocks.delete(keyOf(path, code));
  if (!applied) return;
  blocks.set(keyOf(path, code), applied);
  for (const old of blocks.keys()) {
    if (blocks.size <= most) break;
    blocks.delete(old);
  }
}
