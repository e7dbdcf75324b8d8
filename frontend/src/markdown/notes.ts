import type { Token } from 'marked';

// Footnotes and folds, which GFM's rules for blocks lack.

/** A reference to a footnote within a text. */
export interface NoteRef {
  readonly type: 'noteRef';
  readonly raw: string;
  readonly id: string;
  readonly notes: Notes;
}

/** A footnote, which stands where it was written. */
export interface Note {
  readonly type: 'note';
  readonly raw: string;
  readonly id: string;
  readonly notes: Notes;
  readonly tokens: Token[];
}

/** A part of a text that a person unfolds. */
export interface Fold {
  readonly type: 'fold';
  readonly raw: string;
  readonly open: boolean;
  readonly summary: Token[];
  readonly tokens: Token[];
}

const definition = /^ {0,3}\[\^([^\]\s]{1,64})\]:[ \t]*/;
const definitions = /^ {0,3}\[\^([^\]\s]{1,64})\]:/gm;

/** The footnotes of a text, which are counted in the order in which the text refers to them. */
export class Notes {
  readonly #defined: Set<string>;
  readonly #numbers = new Map<string, number>();

  constructor(text: string) {
    this.#defined = new Set([...text.matchAll(definitions)].map(([, id = '']) => id));
  }

  get any(): boolean {
    return this.#defined.size > 0;
  }

  /** Returns the reference at the start of a text. What has no footnote is text. */
  ref(text: string): NoteRef | undefined {
    const [raw, id] = /^\[\^([^\]\s]{1,64})\](?!:)/.exec(text) ?? [];
    if (raw === undefined || id === undefined || !this.#defined.has(id)) return undefined;
    if (!this.#numbers.has(id)) this.#numbers.set(id, this.#numbers.size + 1);
    return { type: 'noteRef', raw, id, notes: this };
  }

  /** Returns what the footnote is called: its number, or its own name where nothing refers to it. */
  nameOf(id: string): string {
    return String(this.#numbers.get(id) ?? id);
  }

  /** Returns the source of the footnote at the start of a text, and its words. Lines that follow belong to it until a blank line. */
  static source(text: string): { raw: string; id: string; words: string } | undefined {
    const [head, id] = definition.exec(text) ?? [];
    if (head === undefined || id === undefined) return undefined;
    let end = text.indexOf('\n');
    if (end < 0) end = text.length;
    while (end < text.length) {
      const next = text.slice(end + 1);
      const [line = ''] = /^[^\n]*/.exec(next) ?? [];
      const goesOn =
        line.trim() === ''
          ? /^(?:[ \t]*\n)+(?: {4}|\t)/.test(next)
          : !definition.test(line) && !/^ {0,3}(?:#{1,6} |```|~~~|<)/.test(line);
      if (!goesOn) break;
      end += 1 + line.length;
    }
    const raw = text.slice(0, Math.min(end + 1, text.length));
    return { raw, id, words: raw.slice(head.length).replace(/^(?: {4}|\t)/gm, '') };
  }
}

const opening = /^ {0,3}<details(\s[^<>\n]*)?>[ \t]*/i;
const mark = /<(\/?)details(?:\s[^<>\n]*)?>|^ {0,3}(`{3,}|~{3,})[^\n]*$/gim;

/** Returns the parts of the fold at the start of a text. A fold without an end reaches to the end of the text, and is open. */
export function foldAt(
  text: string,
): { raw: string; open: boolean; summary: string; words: string } | undefined {
  const [head, attributes = ''] = opening.exec(text) ?? [];
  if (head === undefined) return undefined;
  let depth = 1;
  let fence: string | undefined;
  let inner = text.length;
  let end = text.length;
  mark.lastIndex = head.length;
  for (let found = mark.exec(text); found; found = mark.exec(text)) {
    const [whole, closes, ticks] = found;
    if (ticks) {
      if (fence === undefined) fence = ticks;
      else if (whole.trim() === ticks && ticks.startsWith(fence)) fence = undefined;
      continue;
    }
    if (fence !== undefined) continue;
    depth += closes ? -1 : 1;
    if (depth > 0) continue;
    inner = found.index;
    end = inner + whole.length;
    break;
  }
  const [rest = ''] = /^[ \t]*\n?/.exec(text.slice(end)) ?? [];
  const inside = text.slice(head.length, inner);
  const [named = '', summary = ''] =
    /^\s*<summary(?:\s[^<>]*)?>([^]*?)<\/summary>[ \t]*\n?/i.exec(inside) ?? [];
  return {
    raw: text.slice(0, end + rest.length),
    open: depth > 0 || /(?:^|\s)open(?:\s|=|$)/i.test(attributes),
    summary: summary.replace(/\s+/g, ' ').trim(),
    words: inside.slice(named.length),
  };
}
