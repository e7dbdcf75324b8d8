import { Lexer, Tokenizer, type MarkedOptions, type Tokens, type TokensList } from 'marked';
import { extras } from './late';

// What is read of Markdown otherwise than GFM has it, and how long it may take.

/** The blocks of a text, and whether the same text read as one that has ended could have others. */
export type Lexed = TokensList & { readonly unsure: boolean };

/** Parses one piece of Markdown, to which more may come or not; a test counts the calls. */
export type Lex = (text: string, links: TokensList['links'], ended?: boolean) => Lexed;

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

/** Chinese, Japanese and Korean: between their signs and words stand no blanks that would say where emphasis begins and ends. */
const cjk =
  /[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe6f\uff00-\uffef\u{1b000}-\u{1b16f}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]/u;

function mayHoldFormula(text: string): boolean {
  return text.includes('$') || text.includes('\\(') || text.includes('\\[');
}

const fileOfMarkdown = /(?:```|~~~)[^\n]*(?:md|mark|mk|mdown)/i;

/** Whether what is loaded late reads more in a text. */
export function wantsMore(text: string): boolean {
  return (
    text.includes('|') ||
    text.includes('](') ||
    mayHoldFormula(text) ||
    fileOfMarkdown.test(text) ||
    cjk.test(text)
  );
}

type Extras = NonNullable<typeof extras.now>;

/** What ends an address in such a text: their punctuation, and behind a name without a path also their words. */
const afterAddress =
  /[\u3000-\u3003\u3008-\u3011\u3014-\u301f\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff3b\uff3d\uff5b-\uff65\u2018-\u201d\u2026]/;
const afterHost =
  /^((?:https?:\/\/|www\.)[a-z0-9.-]+(?::\d+)?)[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/i;

/**
 * Marked's rules, which look for the end of each mark in all that follows it: a hundred kilobytes of marks without ends took a minute, in
 * which the window stood still. So looking has a price, and what remains when that is spent is text. No text that people read is near it.
 */
class Rules extends Tokenizer {
  #left: number;
  readonly #wild: boolean;
  readonly #cjk: boolean;
  readonly #extras: Extras | undefined;
  readonly #formulas: Extras | undefined;
  readonly #ended: boolean;
  #depth = 0;
  /** The texts that marks are looked for in last, without their formulas. */
  readonly #masked = new Map<string, string>();
  unsure = false;

  constructor(text: string, ended: boolean) {
    super();
    this.#ended = ended;
    this.#cjk = cjk.test(text);
    this.#extras = wantsMore(text) ? extras.now : undefined;
    this.#formulas = mayHoldFormula(text) ? this.#extras : undefined;
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
    if (address.test(text)) return undefined;
    const found = super.url(text);
    if (!found || !this.#cjk) return found;
    const [, host] = afterHost.exec(found.raw) ?? [];
    const end = host?.length ?? found.raw.search(afterAddress);
    return end > 0 ? super.url(text.slice(0, end)) : found;
  }

  /** A footnote is no address that `[^1]` would lead to: as one it was not seen at all. */
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

  /** What reads formulas; nothing for a text that can hold none. */
  extensions(): NonNullable<MarkedOptions['extensions']> | null {
    const formulas = this.#formulas;
    if (!formulas) return null;
    return {
      renderers: {},
      childTokens: {},
      block: [(text) => this.#blockFormula(text, formulas)],
      startBlock: [(paragraph) => formulas.formulaWithin(paragraph)],
      inline: [
        (text, tokens) =>
          /^[$\\]/.test(text)
            ? (formulas.phraseFormula(text, tokens.at(-1)?.raw ?? '') as Tokens.Generic | undefined)
            : undefined,
      ],
      startInline: [(text) => text.indexOf('$')],
    };
  }

  #blockFormula(text: string, formulas: Extras): Tokens.Generic | undefined {
    const found = formulas.blockFormula(text);
    if (found || !formulas.beginsFormula(text)) return found as Tokens.Generic | undefined;
    this.unsure = true;
    if (!text.trimStart().startsWith('\\[')) return undefined;
    // It has no end yet: shown as it is written, or the backslash of its mark would be gone.
    const end = text.search(/\n[ \t]*(?:\n|$)/);
    const raw = end < 0 ? text : text.slice(0, end);
    return { type: 'formula', raw, tex: '', display: true, block: true };
  }

  /** Whether marks of a paragraph may stand between words without blanks. */
  #near(masked: string): boolean {
    return this.#cjk && this.#extras !== undefined && cjk.test(masked);
  }

  /** What the marks of a paragraph are looked for in. */
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
   * The rule for a heading that is underlined goes through each paragraph sign by sign, in a pattern that WebKit does not compile: of a line of
   * 2,000 characters to which words are added it was three fifths of all parsing. It is asked where a line may be such a line alone.
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
