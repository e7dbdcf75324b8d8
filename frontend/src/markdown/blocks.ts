import type { Token, TokensList } from 'marked';
import { lex, type Lex } from './rules';

// Incremental Markdown. The text is split into top-level blocks. A finished block is rendered once; only the last block is parsed again
// when text is added. Parsing the whole text for every chunk makes slow frames in every engine.

export interface Block {
  /** The position among the blocks, which is the block's identity. */
  readonly key: number;
  readonly raw: string;
  readonly token: Token;
}

export interface Blocks {
  readonly source: string;
  readonly blocks: readonly Block[];
  /** The number of blocks, from the first, that can no longer change. */
  readonly finished: number;
  /** The number of source characters in the finished blocks. */
  readonly settled: number;
  /** The link definitions of finished blocks, for later blocks. */
  readonly links: TokensList['links'];
  /** Parsing the whole text at its end could change a finished block, because the text defines a link or had an open fence or formula. */
  readonly unsure: boolean;
}

export const empty: Blocks = { source: '', blocks: [], finished: 0, settled: 0, links: {}, unsure: false };

/** Returns the blocks of a source. Where the source continues the earlier source, finished blocks are reused. */
export function advance(before: Blocks, said: string, parse: Lex = lex, ended = false): Blocks {
  // The lexer would convert line ends; then positions would not match, and nothing after the first would be settled.
  const source = said.includes('\r') ? said.replace(/\r\n?/g, '\n') : said;
  if (source === before.source) return before;
  const base = source.startsWith(before.source.slice(0, before.settled)) ? before : empty;
  const kept = base.blocks.slice(0, base.finished);
  const rest = apart(source.slice(base.settled));
  const tokens = parse(rest, base.links, ended);

  const blocks: Block[] = [...kept];
  for (const token of tokens) {
    blocks.push({ key: blocks.length, raw: token.raw, token });
  }
  const finished = countFinished(blocks, kept.length);
  const settling = blocks.slice(kept.length, finished);
  const unsure = base.unsure || tokens.unsure || Object.keys(tokens.links).length > 0;
  // The lexer changes some characters, such as tabs. Then positions do not match and nothing is settled.
  if (!source.startsWith(raws(settling), base.settled)) {
    return { ...base, source, blocks, finished: kept.length, unsure };
  }
  return {
    source,
    blocks,
    finished,
    settled: base.settled + raws(settling).length,
    links: settling.length > 0 ? { ...base.links, ...definitions(settling) } : base.links,
    unsure,
  };
}

/** Copies a string. Engines keep the whole string that a substring was cut from, so each block would keep a copy of the message. */
function apart(text: string): string {
  return ` ${text}`.slice(1);
}

/** Returns the link definitions of finished blocks. In an unfinished block the address may be incomplete. */
function definitions(blocks: readonly Block[]): TokensList['links'] {
  const links: TokensList['links'] = {};
  for (const { token } of blocks) {
    if (token.type === 'def') links[String(token['tag'])] ??= { href: token['href'], title: token['title'] };
  }
  return links;
}

/** Parses a text that has ended. Links that are defined after their use are resolved here. */
export function whole(source: string, parse: Lex = lex): Blocks {
  return advance(empty, source, parse, true);
}

function raws(blocks: readonly Block[]): string {
  let text = '';
  for (const block of blocks) text += block.raw;
  return text;
}

/**
 * Counts the blocks that cannot change when text is added. The last block always can. While the last block is a single unfinished line, the
 * block before can change too, unless a blank line has ended that block: a paragraph "2" may become the item "2. b" of the list above.
 */
function countFinished(blocks: readonly Block[], from: number): number {
  const last = lastReal(blocks, blocks.length, from);
  if (last < 0) return from;
  if (blocks[last]?.raw.includes('\n')) return last;
  const previous = lastReal(blocks, last, from);
  if (previous < 0) return from;
  return ended(blocks, previous, last) ? last : previous;
}

/**
 * Reports whether a blank line has ended a block for good. Parsing a table again for each word of the next line took longer than a frame.
 */
function ended(blocks: readonly Block[], at: number, next: number): boolean {
  const block = blocks[at];
  if (!block || (next === at + 1 && !block.raw.endsWith('\n\n'))) return false;
  const { type } = block.token;
  return (
    type === 'paragraph' ||
    type === 'table' ||
    type === 'heading' ||
    (type === 'code' && /^ {0,3}[`~]/.test(block.raw))
  );
}

/** Returns the index of the last block before `end` that is not blank. */
function lastReal(blocks: readonly Block[], end: number, from: number): number {
  for (let index = end - 1; index >= from; index--) {
    if (blocks[index]?.token.type !== 'space') return index;
  }
  return -1;
}

/** Blocks that are rendered together. */
export interface Piece {
  /** The position of the first block, which is the piece's identity. */
  readonly key: number;
  readonly raw: string;
  readonly tokens: readonly Token[];
}

/**
 * Groups blocks to render together. In a finished text consecutive blocks share a piece, since each call costs as much as a long paragraph.
 * Code is alone because its colours come later; a block with HTML is alone because an unclosed tag must not reach beyond the block. While
 * text streams, every block is alone.
 */
export function pieces(blocks: readonly Block[], streams: boolean): Piece[] {
  const list: Piece[] = [];
  let run: { key: number; raw: string; tokens: Token[] } | undefined;
  for (const { key, raw, token } of blocks) {
    if (token.type === 'space') continue;
    if (streams || token.type === 'code' || raw.includes('<')) {
      run = undefined;
      list.push({ key, raw, tokens: [token] });
    } else if (run) {
      run.raw += `\n${raw}`;
      run.tokens.push(token);
    } else {
      run = { key, raw, tokens: [token] };
      list.push(run);
    }
  }
  return list;
}
