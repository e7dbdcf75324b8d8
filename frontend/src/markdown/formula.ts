// Where formulas stand in a text: between \( and \), \[ and \], $$ and $$; and between single dollars, where nothing else can be meant. What
// is found here is drawn elsewhere. To Markdown all of these are words with marks and escapes in them.

export interface Formula {
  readonly type: 'formula';
  readonly raw: string;
  readonly tex: string;
  /** It stands on a line of its own. */
  readonly display: boolean;
  /** It is no part of a paragraph. */
  readonly block: boolean;
}

/** No formula of a paper is longer, and no more is looked through for the end of one. */
const longest = 8_192;

/** What no sentence and no program has between brackets or dollars: a command, an exponent, an index of a letter, an equation. */
const tex = /\\[a-zA-Z,;!]|\^|=|(?:^|[^\p{L}\p{N}_])\p{L}_[\p{L}\p{N}{\\]/u;
/** Words between parentheses that somebody has escaped. */
const words = /^\s*\p{L}{2,}(?:[\s,.'’-]+\p{L}{2,})*[.!?]?\s*$/u;
/** A word that a dollar belongs to. Chinese, Japanese and Korean have no blanks between words and formulas. */
const word = /[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{N}_]$/u;

/** The end of what a mark has begun, no farther than a formula is long, and before any code. */
function between(text: string, from: number, end: string): string | undefined {
  const at = text.indexOf(end, from);
  if (at < from + 1 || at - from > longest) return undefined;
  const inside = text.slice(from, at);
  return inside.trim() === '' || inside.includes('`') ? undefined : inside;
}

/** The formula in a paragraph that a text begins with; before it stands the other text. */
export function phraseFormula(text: string, before: string): Formula | undefined {
  const made = (inside: string | undefined, mark: number, display: boolean): Formula | undefined =>
    inside === undefined
      ? undefined
      : {
          type: 'formula',
          raw: text.slice(0, inside.length + 2 * mark),
          tex: inside.trim(),
          display,
          block: false,
        };
  if (text.startsWith('\\(')) {
    const inside = between(text, 2, '\\)');
    return inside !== undefined && !words.test(inside) ? made(inside, 2, false) : undefined;
  }
  if (text.startsWith('\\[')) {
    const inside = between(text, 2, '\\]');
    return inside !== undefined && tex.test(inside) ? made(inside, 2, true) : undefined;
  }
  if (!text.startsWith('$') || before.endsWith('$') || word.test(before)) return undefined;
  if (text.startsWith('$$')) {
    const inside = between(text, 2, '$$');
    if (inside === undefined || text.startsWith('$$$')) return undefined;
    return !/^\s|\s$/.test(inside) || tex.test(inside) ? made(inside, 2, true) : undefined;
  }
  return made(singleDollars(text), 1, false);
}

/** Between single dollars stands a formula where both stand close to it, no word follows, and it is one letter or nothing but TeX. */
function singleDollars(text: string): string | undefined {
  const [, inside] =
    /^\$((?:[^\s$`\\]|\\[^\n])(?:(?:[^$`\\\n]|\\[^\n])*?(?:[^\s$`\\]|\\[^\n]))?)\$(?![\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{N}_{($])/u.exec(
      text,
    ) ?? [];
  if (inside === undefined || inside.length > longest) return undefined;
  return tex.test(inside) || /^\p{L}'?$/u.test(inside) ? inside : undefined;
}

/** The formula that stands on lines of its own at the beginning of a text. */
export function blockFormula(text: string): Formula | undefined {
  const [head, , mark] = /^( {0,3})(\$\$|\\\[)/.exec(text) ?? [];
  if (head === undefined) return undefined;
  const end = mark === '$$' ? '$$' : '\\]';
  const inside = between(text, head.length, end);
  const after = /^[ \t]*(?=\n|$)/.exec(text.slice(head.length + (inside?.length ?? 0) + 2));
  const alone = /^[ \t]*\n/.test(text.slice(head.length));
  if (inside === undefined || !after) return undefined;
  if (/\n {0,3}(?:`{3}|~{3}|#{1,6} )/.test(inside)) return undefined;
  // A program's own number is $$ in a shell, and brackets are escaped in many texts.
  const sure =
    tex.test(inside) || (alone && !/\n[ \t]*\n/.test(inside)) || (mark === '$$' && !inside.includes('\n'));
  if (!sure) return undefined;
  const raw = text.slice(0, head.length + inside.length + 2) + after[0];
  return { type: 'formula', raw, tex: inside.trim(), display: true, block: true };
}

/** Whether a text begins with the mark of a formula on a line of its own. */
export function beginsFormula(text: string): boolean {
  return /^ {0,3}(?:\$\$|\\\[)[ \t]*(?:\n|$)/.test(text);
}

/** Where in a paragraph a formula on lines of its own begins; -1 = nowhere. */
export function formulaWithin(paragraph: string): number {
  const end = paragraph.indexOf('\n\n');
  const near = end < 0 ? paragraph : paragraph.slice(0, end);
  for (const { index } of near.matchAll(/\n(?= {0,3}(?:\$\$|\\\[))/g)) {
    if (blockFormula(paragraph.slice(index + 1))) return index + 1;
  }
  return -1;
}

/** What the marks of a text are looked for in, without those that stand in a formula: as long, and with code taken out of it before. */
export function withoutFormulas(text: string, masked: string): string {
  const begins = /[$\\]/g;
  let made = '';
  let from = 0;
  for (let found = begins.exec(text); found; found = begins.exec(text)) {
    const at = found.index;
    const dollar = found[0] === '$';
    // An escape is masked by signs, and code by letters.
    const formula =
      masked[at] === (dollar ? '$' : '+') ? phraseFormula(text.slice(at), text.slice(0, at)) : undefined;
    if (formula) {
      made += masked.slice(from, at) + 'a'.repeat(formula.raw.length);
      from = begins.lastIndex = at + formula.raw.length;
    } else if (!dollar) begins.lastIndex = at + 2;
  }
  return made + masked.slice(from);
}
