// Matches queries against texts by the rules of the search index of the backend. All words must occur, the last as a prefix; "several
// words" occur in this order; -word must not occur. Case and accents are ignored.

/** A term of a query. */
export interface Term {
  /** Folded words; several words are a phrase. */
  words: readonly string[];
  not: boolean;
  /** The last word is a prefix. */
  prefix: boolean;
}

interface Span {
  start: number;
  end: number;
}

interface Word extends Span {
  text: string;
}

/** Matches a word: a single CJK character, or letters and digits with their marks. */
const word =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}\p{Co}](?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}])[\p{L}\p{N}\p{Co}\p{M}])*/gu;

function wordsOf(text: string): Word[] {
  return Array.from(text.matchAll(word), (match) => ({
    text: fold(match[0]),
    start: match.index,
    end: match.index + match[0].length,
  }));
}

function fold(text: string): string {
  return text
    .normalize('NFD')
    .replace(/\p{Mn}/gu, '')
    .toLowerCase();
}

export function termsOf(query: string): Term[] {
  const terms: Term[] = [];
  const parts = [...query.matchAll(/(-?)(?:"([^"]*)"?|(\S+))/gu)];
  parts.forEach((part, at) => {
    const [, minus, quoted, plain] = part;
    const not = minus === '-';
    const words = wordsOf(quoted ?? plain ?? '').map((one) => one.text);
    const prefix = !not && quoted === undefined && at === parts.length - 1;
    if (words.length > 0) terms.push({ words, not, prefix });
  });
  return terms;
}

/** Returns the matches in a text in order; adjacent matches are merged. */
export function spansIn(text: string, terms: readonly Term[]): Span[] {
  const all = wordsOf(text);
  const found: Span[] = [];
  for (const term of terms) {
    if (term.not) continue;
    for (let at = 0; at + term.words.length <= all.length; at++) {
      const first = all[at];
      const last = all[at + term.words.length - 1];
      if (first && last && fits(all, at, term)) found.push({ start: first.start, end: last.end });
    }
  }
  found.sort((a, b) => a.start - b.start);
  const merged: Span[] = [];
  for (const span of found) {
    const before = merged.at(-1);
    if (before && span.start <= before.end) before.end = Math.max(before.end, span.end);
    else merged.push({ ...span });
  }
  return merged;
}

function fits(all: readonly Word[], at: number, term: Term): boolean {
  return term.words.every((wanted, nth) => {
    const here = all[at + nth]?.text ?? '';
    return term.prefix && nth === term.words.length - 1 ? here.startsWith(wanted) : here === wanted;
  });
}
