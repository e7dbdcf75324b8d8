import type { Token, TokensList } from 'marked';
import { lex, type Lex } from './rules';

// Markdown that grows. The text is cut into top-level blocks; a block that has ended is rendered once and never looked at again,
// only the last one is parsed anew when text is added. Parsing everything for every chunk makes slow frames in every engine.

export interface Block {
  /** Its place among the blocks, and so its identity. */
  readonly key: number;
  readonly raw: string;
  readonly token: Token;
}

export interface Blocks {
  readonly source: string;
  readonly blocks: readonly Block[];
  /** How many of the blocks, from the first, can no longer change. */
  readonly finished: number;
  /** How many characters of the source the finished blocks take. */
  readonly settled: number;
  /** The links that finished blocks define, for later ones. */
  readonly links: TokensList['links'];
  /** Parsing everything anew, once it has ended, could change a finished block: some link is defined somewhere, or a fence or formula was open. */
  readonly unsure: boolean;
}

export const empty: Blocks = { source: '', blocks: [], finished: 0, settled: 0, links: {}, unsure: false };

/** The blocks of the source. Where it continues what was parsed before, finished blocks are taken over as they are. */
export function advance(before: Blocks, said: string, parse: Lex = lex, ended = false): Blocks {
  // The lexer takes each of them for the end of a line; left to it, nothing after the first would be settled.
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
  // The lexer changes some characters (a tab); then positions cannot be trusted and nothing is settled.
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

/** A copy: a part of a text keeps the whole of it, and what a block says would keep all of its message, anew for each block. */
function apart(text: string): string {
  return ` ${text}`.slice(1);
}

/** What finished blocks define; of an unfinished one the address may still be half. */
function definitions(blocks: readonly Block[]): TokensList['links'] {
  const links: TokensList['links'] = {};
  for (const { token } of blocks) {
    if (token.type === 'def') links[String(token['tag'])] ??= { href: token['href'], title: token['title'] };
  }
  return links;
}

/** Everything anew, as a text that has ended: links that were defined after their use are resolved by this once. */
export function whole(source: string, parse: Lex = lex): Blocks {
  return advance(empty, source, parse, true);
}

function raws(blocks: readonly Block[]): string {
  let text = '';
  for (const block of blocks) text += block.raw;
  return text;
}

/**
 * How many blocks cannot change when text is added. The last one always can. While it is a single unfinished line, the one before
 * can too, unless it has ended for good: what looks like a paragraph "2" may become the item "2. b" of the list above it.
 */
function countFinished(blocks: readonly Block[], from: number): number {
  const last = lastReal(blocks, blocks.length, from);
  if (last < 0) return from;
  if (blocks[last]?.raw.includes('\n')) return last;
  const previous = lastReal(blocks, last, from);
  if (previous < 0) return from;
  return ended(blocks, previous, last) ? last : previous;
}

/** What a blank line ends, whatever comes after it. Parsing a table anew for each word of the line below it took longer than a frame. */
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

/** The index of the last block before `end` that is more than blank lines. */
function lastReal(blocks: readonly Block[], end: number, from: number): number {
  for (let index = end - 1; index >= from; index--) {
    if (blocks[index]?.token.type !== 'space') return index;
  }
  return -1;
}

/** Blocks that are rendered in one go. */
export interface Piece {
  /** Its place among the blocks, and so its identity. */
  readonly key: number;
  readonly raw: string;
  readonly tokens: readonly Token[];
}

/**
 * What is rendered in one go: the blocks of a text that stands, as far as they follow each other, since each go costs as much as a
 * long paragraph. Code stands alone, because it gets its colours later, and so does what holds HTML: a tag that is not closed must
 * not reach beyond its block. While text streams in every block stands alone.
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
