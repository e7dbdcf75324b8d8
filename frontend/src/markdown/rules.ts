import { Lexer, Tokenizer, type MarkedOptions, type Token, type Tokens, type TokensList } from 'marked';
import { extras } from './late';
import type { Notes } from './notes';

// The deviations of the parser from GFM, and its limits on time.

/** The blocks of a text. unsure: parsing the text as ended could give other blocks. */
type Lexed = TokensList & { readonly unsure: boolean };

/** Parses a piece of Markdown; ended means that no more text comes. Tests pass a function that counts the calls. */
export type Lex = (text: string, links: TokensList['links'], ended?: boolean) => Lexed;

/** The deepest nesting of blocks and marks. Each level reads all its content, and a thousand levels overflow the stack. */
const deepest = 20;
/** The longest heading in characters. */
const longestHeading = 16_384;
/** The longest address. The parser finds an address's end by removing one character at a time. */
const longestAddress = 4_096;
const address = new RegExp(`^(?:https?|ftp|www)[^\\s<]{${longestAddress}}`, 'i');

/**
 * Matches a line that is not treated as a list, because the parser would check for each following line whether this line is a thematic
 * break.
 */
const noList = /(?:[-*_][ \t]+){200}|[-*_][ \t]{500}/;

/**
 * The local part of a mail address has at most 64 characters (RFC 5321, 4.5.3.1.1). Without this limit each word was read to its end from
 * each character.
 */
const { gfm } = Lexer.rules.inline;
const inline = { ...gfm, text: short(gfm.text), url: short(gfm.url) };

function short(rule: RegExp): RegExp {
  return new RegExp(rule.source.replace(/(-\])\+(?=\(?@)/g, '$1{1,64}'), rule.flags);
}

/** Chinese, Japanese and Korean have no spaces between words and punctuation, which would show where emphasis begins and ends. */
const cjk =
  /[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe6f\uff00-\uffef\u{1b000}-\u{1b16f}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]/u;

function mayHoldFormula(text: string): boolean {
  return text.includes('$') || text.includes('\\(') || text.includes('\\[');
}

const fileOfMarkdown = /(?:```|~~~)[^\n]*(?:md|mark|mk|mdown)/i;

const hasFold = /^ {0,3}<details/im;
const mathFence = /^ *(?:```|~~~)[ \t]*math\b/m;

/** Reports whether a text needs the parts that are loaded late. */
export function wantsMore(text: string): boolean {
  return (
    text.includes('|') ||
    text.includes('](') ||
    mayHoldFormula(text) ||
    text.includes('[^') ||
    hasFold.test(text) ||
    fileOfMarkdown.test(text) ||
    mathFence.test(text) ||
    cjk.test(text)
  );
}

type Extras = NonNullable<typeof extras.now>;

/** Matches the end of an address in such a text: CJK punctuation and, after a host without a path, also CJK letters. */
const afterAddress =
  /[\u3000-\u3003\u3008-\u3011\u3014-\u301f\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff3b\uff3d\uff5b-\uff65\u2018-\u201d\u2026]/;
const afterHost =
  /^((?:https?:\/\/|www\.)[a-z0-9.-]+(?::\d+)?)[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/i;

/**
 * Marked's rules search for the end of each mark in all following text: a hundred kilobytes of unclosed marks took a minute, during which
 * the window did not respond. So each search has a price, and when the budget is spent, the rest is plain text. No text that people read
 * comes near the budget.
 */
class Rules extends Tokenizer {
  #left: number;
  readonly #wild: boolean;
  readonly #cjk: boolean;
  readonly #extras: Extras | undefined;
  readonly #formulas: Extras | undefined;
  readonly #folds: Extras | undefined;
  readonly #notes: Notes | undefined;
  readonly #ended: boolean;
  #depth = 0;
  /** The last texts that were searched for marks, with their formulas masked. */
  readonly #masked = new Map<string, string>();
  unsure = false;

  constructor(text: string, ended: boolean) {
    super();
    this.#ended = ended;
    this.#cjk = cjk.test(text);
    this.#extras = wantsMore(text) ? extras.now : undefined;
    this.#formulas = mayHoldFormula(text) ? this.#extras : undefined;
    this.#folds = hasFold.test(text) ? this.#extras : undefined;
    const notes = text.includes('[^') && this.#extras ? new this.#extras.Notes(text) : undefined;
    this.#notes = notes?.any ? notes : undefined;
    // What refers to a footnote often stands in a block that is finished before the footnote comes.
    if (this.#notes && !ended) this.unsure = true;
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

  /** Tries a rule, at the price of the text that the rule reads when the mark has no end. */
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
    // An underscore within a word begins nothing, so names of variables cost nothing.
    if (!/^[*_]/.test(text) || (text.startsWith('_') && /[\p{L}\p{N}]$/u.test(before))) return undefined;
    const marks = this.#marks(text, masked);
    return this.#tried(text.length, () => {
      const found = this.#near(masked) && this.#extras?.emStrong?.call(this, text, marks, before);
      return found === false ? super.emStrong(text, marks, before) : found;
    });
  }

  override del(text: string, masked: string, before?: string) {
    if (!text.startsWith('~')) return undefined;
    const marks = this.#marks(text, masked);
    return this.#tried(text.length, () => {
      const found = this.#near(masked) && this.#extras?.del?.call(this, text, marks, before);
      return found === false ? super.del(text, marks, before) : found;
    });
  }

  /** An address is read to the next space first, whether or not all of it belongs to the link. */
  override link(text: string) {
    if (!this.lexer.state.linkParenPossible || !/^!?\[/.test(text)) return undefined;
    return this.#tried(text.length >> 3, () => super.link(text), text.length >> 3);
  }

  override reflink(text: string, links: TokensList['links']) {
    if (!/^!?\[/.test(text)) return undefined;
    return this.#tried(text.length >> 3, () => super.reflink(text, links));
  }

  /** Other tags end at the next "<" or ">". */
  override tag(text: string) {
    return /^<[?!]/.test(text) ? this.#tried(text.length, () => super.tag(text)) : super.tag(text);
  }

  override url(text: string) {
    if (address.test(text)) return undefined;
    const found = super.url(text);
    if (!found || !this.#cjk) return found;
    const [, host] = afterHost.exec(found.raw) ?? [];
    const end = host?.length ?? found.raw.search(afterAddress);
    return end > 0 ? super.url(text.slice(0, end)) : found;
  }

  /** A footnote is no link definition. As a definition of `[^1]` it would not be shown at all. */
  override def(text: string) {
    return /^ {0,3}\[\^/.test(text) ? undefined : super.def(text);
  }

  override fences(text: string) {
    const found = /^ {0,3}[`~]{3}/.test(text) ? this.#extras?.fileFence(text, this.#ended) : undefined;
    if (!found) return super.fences(text);
    if (found.unsure) this.unsure = true;
    const { raw, info: lang } = found;
    return { type: 'code' as const, raw, lang, text: found.text };
  }

  override table(text: string) {
    const found = this.rules.block.table.exec(text)?.[0];
    if (found === undefined) return undefined;
    const fitted = this.#extras?.fittedTable(found);
    if (fitted === undefined) return super.table(text);
    const made = super.table(fitted);
    return made && { ...made, raw: found.slice(0, found.length - (fitted.length - made.raw.length)) };
  }

  /** Returns the rules for formulas, footnotes and folds; null for a text without them. */
  extensions(): NonNullable<MarkedOptions['extensions']> | null {
    const formulas = this.#formulas;
    const folds = this.#folds;
    const notes = this.#notes;
    if (!formulas && !folds && !notes) return null;
    return {
      renderers: {},
      childTokens: {},
      block: [
        (text) => (formulas ? this.#blockFormula(text, formulas) : undefined),
        (text) => (folds && /^ {0,3}</.test(text) ? this.#fold(text, folds) : undefined),
        (text) => (notes && /^ {0,3}\[\^/.test(text) ? this.#note(text, notes) : undefined),
      ],
      startBlock: [
        (paragraph) => (formulas ? formulas.formulaWithin(paragraph) : -1),
        (paragraph) => (notes ? paragraph.search(/\n {0,3}\[\^[^\]\s]{1,64}\]:/) + 1 || -1 : -1),
      ],
      inline: [
        (text, tokens) =>
          formulas && /^[$\\]/.test(text)
            ? (formulas.phraseFormula(text, tokens.at(-1)?.raw ?? '') as Tokens.Generic | undefined)
            : undefined,
        (text) => (text.startsWith('[^') ? (notes?.ref(text) as Tokens.Generic | undefined) : undefined),
      ],
      startInline: [
        (text) => (formulas ? text.indexOf('$') : -1),
        (text) => (notes ? text.indexOf('[^') : -1),
      ],
    };
  }

  #fold(text: string, folds: Extras): Tokens.Generic | undefined {
    return this.#within(() => {
      const found = folds.foldAt(text);
      if (!found) return undefined;
      const { raw, open, summary, words } = found;
      return {
        type: 'fold',
        raw,
        open,
        summary: this.#inline(summary),
        tokens: this.lexer.blockTokens(words, []),
      };
    });
  }

  #note(text: string, notes: Notes): Tokens.Generic | undefined {
    return this.#within(() => {
      const found = this.#extras?.Notes.source(text);
      if (!found) return undefined;
      const { raw, id, words } = found;
      return { type: 'note', raw, id, notes, tokens: this.lexer.blockTokens(words, []) };
    });
  }

  #inline(text: string): Token[] {
    const tokens: Token[] = [];
    this.lexer.inline(text, tokens);
    return tokens;
  }

  #blockFormula(text: string, formulas: Extras): Tokens.Generic | undefined {
    const found = formulas.blockFormula(text);
    if (found || !formulas.beginsFormula(text)) return found as Tokens.Generic | undefined;
    this.unsure = true;
    if (!text.trimStart().startsWith('\\[')) return undefined;
    // The formula has no end yet. It is shown as source, or the backslash of its mark would disappear.
    const end = text.search(/\n[ \t]*(?:\n|$)/);
    const raw = end < 0 ? text : text.slice(0, end);
    return { type: 'formula', raw, tex: '', display: true, block: true };
  }

  /** Reports whether a paragraph may have marks between words without spaces. */
  #near(masked: string): boolean {
    return this.#cjk && this.#extras !== undefined && cjk.test(masked);
  }

  /** Returns the text in which marks are searched. */
  #marks(text: string, masked: string): string {
    if (!this.#formulas) return masked;
    const held = this.#masked.get(masked);
    if (held !== undefined) return held;
    const from = masked.length - text.length;
    const made = masked.slice(0, from) + this.#formulas.withoutFormulas(text, masked.slice(from));
    if (this.#masked.size > 8) this.#masked.clear();
    this.#masked.set(masked, made);
    return made;
  }

  /**
   * The rule for underlined headings reads each paragraph character by character, with a pattern that WebKit does not compile. In a
   * streamed line of 2,000 characters that took three fifths of the parsing time. So the rule runs only where a following line can be an
   * underline.
   */
  override lheading(text: string) {
    const near = text.slice(0, longestHeading);
    const end = near.indexOf('\n\n');
    return /\n {0,3}[=-]/.test(end < 0 ? near : near.slice(0, end)) ? super.lheading(text) : undefined;
  }
}

export const lex: Lex = (text, links, ended = false) => {
  const tokenizer = new Rules(text, ended);
  const lexer = new Lexer({ gfm: true, tokenizer, extensions: tokenizer.extensions() });
  tokenizer.rules = { ...tokenizer.rules, inline };
  Object.assign(lexer.tokens.links, links);
  return Object.assign(lexer.lex(text), { unsure: tokenizer.unsure });
};
