import { Lexer, Tokenizer, type Token, type TokensList } from 'marked';

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
  /** Some link is defined somewhere: parsing everything anew could change a finished block. */
  readonly defines: boolean;
}

export const empty: Blocks = { source: '', blocks: [], finished: 0, settled: 0, links: {}, defines: false };

/** Parses one piece of Markdown; a test counts the calls. */
export type Lex = (text: string, links: TokensList['links']) => TokensList;

/** Containers and marks stand in each other to this depth. Each level reads all that is within it, and a thousand are more than the stack holds. */
const deepest = 20;
/** What is no heading within so many characters is none. */
const longestHeading = 16_384;
/** The end of an address is found by taking away sign after sign. */
const longestAddress = 4_096;
const address = new RegExp(`^(?:https?|ftp|www)[^\\s<]{${longestAddress}}`, 'i');

/** Nobody's list: whether its first line is a rule across the page is asked anew for each line below it. */
const noList = /(?:[-*_][ \t]+){200}|[-*_][ \t]{500}/;

/** What stands before the @ of an address of mail has 64 characters at most (RFC 5321, 4.5.3.1.1): each word was read to its end from each sign on. */
const { gfm } = Lexer.rules.inline;
const inline = { ...gfm, text: short(gfm.text), url: short(gfm.url) };

function short(rule: RegExp): RegExp {
  return new RegExp(rule.source.replace(/(-\])\+(?=\(?@)/g, '$1{1,64}'), rule.flags);
}

/**
 * Marked's rules, which look for the end of each mark in all that follows it: a hundred kilobytes of marks without ends took a minute, in
 * which the window stood still. So looking has a price, and what remains when that is spent is text. No text that people read is near it.
 */
class Rules extends Tokenizer {
  #left: number;
  readonly #wild: boolean;
  #depth = 0;

  constructor(text: string) {
    super();
    this.#left = 1_000_000 + 16 * text.length;
    this.#wild = noList.test(text);
  }

  #within<T>(look: () => T | undefined): T | undefined {
    if (this.#depth >= deepest) return undefined;
    this.#depth++;
    try {
      return look();
    } finally {
      this.#depth--;
    }
  }

  /** A mark that is tried, at the price of what is read for it when it has no end. */
  #tried<T extends { raw: string }>(price: number, look: () => T | undefined, least = 0): T | undefined {
    if (this.#left <= 0) return undefined;
    const found = this.#within(look);
    this.#left -= found ? Math.max(found.raw.length, least) : price;
    return found;
  }

  override blockquote(text: string) {
    return this.#within(() => super.blockquote(text));
  }

  override list(text: string) {
    return this.#wild ? undefined : this.#within(() => super.list(text));
  }

  override emStrong(text: string, masked: string, before = '') {
    // Nor does one within a word begin anything; names of variables are free of charge by that.
    if (!/^[*_]/.test(text) || (text.startsWith('_') && /[\p{L}\p{N}]$/u.test(before))) return undefined;
    return this.#tried(text.length, () => super.emStrong(text, masked, before));
  }

  override del(text: string, masked: string, before?: string) {
    if (!text.startsWith('~')) return undefined;
    return this.#tried(text.length, () => super.del(text, masked, before));
  }

  /** An address is read to the next space first, whatever of it belongs to the link. */
  override link(text: string) {
    if (!this.lexer.state.linkParenPossible || !/^!?\[/.test(text)) return undefined;
    return this.#tried(text.length >> 3, () => super.link(text), text.length >> 3);
  }

  override reflink(text: string, links: TokensList['links']) {
    if (!/^!?\[/.test(text)) return undefined;
    return this.#tried(text.length >> 3, () => super.reflink(text, links));
  }

  /** What begins otherwise ends at the next sign like it. */
  override tag(text: string) {
    return /^<[?!]/.test(text) ? this.#tried(text.length, () => super.tag(text)) : super.tag(text);
  }

  override url(text: string) {
    return address.test(text) ? undefined : super.url(text);
  }

  /**
   * The rule for a heading that is underlined goes through each paragraph sign by sign, in a pattern that WebKit does not compile: of a line of
   * 2,000 characters to which words are added it was three fifths of all parsing. It is asked where a line may be such a line alone.
   */
  override lheading(text: string) {
    const near = text.slice(0, longestHeading);
    const end = near.indexOf('\n\n');
    return /\n {0,3}[=-]/.test(end < 0 ? near : near.slice(0, end)) ? super.lheading(text) : undefined;
  }
}

export const lex: Lex = (text, links) => {
  const tokenizer = new Rules(text);
  const lexer = new Lexer({ gfm: true, tokenizer });
  tokenizer.rules = { ...tokenizer.rules, inline };
  Object.assign(lexer.tokens.links, links);
  return lexer.lex(text);
};

/** The blocks of the source. Where it continues what was parsed before, finished blocks are taken over as they are. */
export function advance(before: Blocks, said: string, parse: Lex = lex): Blocks {
  // The lexer takes each of them for the end of a line; left to it, nothing after the first would be settled.
  const source = said.includes('\r') ? said.replace(/\r\n?/g, '\n') : said;
  if (source === before.source) return before;
  const base = source.startsWith(before.source.slice(0, before.settled)) ? before : empty;
  const kept = base.blocks.slice(0, base.finished);
  const rest = apart(source.slice(base.settled));
  const tokens = parse(rest, base.links);

  const blocks: Block[] = [...kept];
  for (const token of tokens) {
    blocks.push({ key: blocks.length, raw: token.raw, token });
  }
  const finished = countFinished(blocks, kept.length);
  const settling = blocks.slice(kept.length, finished);
  const defines = Object.keys(tokens.links).length > 0;
  // The lexer changes some characters (a tab); then positions cannot be trusted and nothing is settled.
  if (!source.startsWith(raws(settling), base.settled)) {
    return { ...base, source, blocks, finished: kept.length, defines };
  }
  return {
    source,
    blocks,
    finished,
    settled: base.settled + raws(settling).length,
    links: settling.length > 0 ? { ...base.links, ...definitions(settling) } : base.links,
    defines,
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

/** Everything anew: links that were defined after their use are resolved by this once, at the end. */
export function whole(source: string, parse: Lex = lex): Blocks {
  return advance(empty, source, parse);
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
