// Finds formulas in a text: between \( and \), \[ and \], $$ and $$, and between single dollars where nothing else can be meant. Markdown
// would read their content as marks and escapes. formulas.ts draws them.

export interface Formula {
  readonly type: 'formula';
  readonly raw: string;
  readonly tex: string;
  /** The formula is centred on a line of its own. */
  readonly display: boolean;
  /** The formula is a block, not a part of a paragraph. */
  readonly block: boolean;
}

/** The largest length of a formula. The search for the end goes no farther. */
const longest = 8_192;

/** Matches text that only TeX has between brackets or dollars: a command, an exponent, an indexed letter, an equation. */
const tex = /\\[a-zA-Z,;!]|\^|=|(?:^|[^\p{L}\p{N}_])\p{L}_[\p{L}\p{N}{\\]/u;
/** Matches plain words between escaped parentheses. */
const words = /^\s*\p{L}{2,}(?:[\s,.'’-]+\p{L}{2,})*[.!?]?\s*$/u;
/** Matches a letter or digit that a dollar belongs to. Chinese, Japanese and Korean have no spaces between words and formulas. */
const word = /[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{N}_]$/u;

/** Returns the text up to the end mark. The end mark must come within `longest` characters and before any code. */
function between(text: string, from: number, end: string): string | undefined {
  const at = text.indexOf(end, from);
  if (at < from + 1 || at - from > longest) return undefined;
  const inside = text.slice(from, at);
  return inside.trim() === '' || inside.includes('`') ? undefined : inside;
}

/** Returns the inline formula at the start of a text; before is the text that precedes it. */
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

/**
 * Returns the formula between single dollars. Both dollars must touch the formula, no word may follow, and the formula must be a single
 * letter or contain TeX.
 */
function singleDollars(text: string): string | undefined {
  const [, inside] =
    /^\$((?:[^\s$`\\]|\\[^\n])(?:(?:[^$`\\\n]|\\[^\n])*?(?:[^\s$`\\]|\\[^\n]))?)\$(?![\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{N}_{($])/u.exec(
      text,
    ) ?? [];
  if (inside === undefined || inside.length > longest) return undefined;
  return tex.test(inside) || /^\p{L}'?$/u.test(inside) ? inside : undefined;
}

/** Returns the block formula at the start of a text. */
export function blockFormula(text: string): Formula | undefined {
  const [head, , mark] = /^( {0,3})(\$\$|\\\[)/.exec(text) ?? [];
  if (head === undefined) return undefined;
  const end = mark === '$$' ? '$$' : '\\]';
  const inside = between(text, head.length, end);
  const after = /^[ \t]*(?=\n|$)/.exec(text.slice(head.length + (inside?.length ?? 0) + 2));
  const alone = /^[ \t]*\n/.test(text.slice(head.length));
  if (inside === undefined || !after) return undefined;
  if (/\n {0,3}(?:`{3}|~{3}|#{1,6} )/.test(inside)) return undefined;
  // $$ is the process id in a shell, and escaped brackets are common, so further signs of a formula are needed.
  const sure =
    tex.test(inside) || (alone && !/\n[ \t]*\n/.test(inside)) || (mark === '$$' && !inside.includes('\n'));
  if (!sure) return undefined;
  const raw = text.slice(0, head.length + inside.length + 2) + after[0];
  return { type: 'formula', raw, tex: inside.trim(), display: true, block: true };
}

/** Reports whether a text begins with the mark of a block formula. */
export function beginsFormula(text: string): boolean {
  return /^ {0,3}(?:\$\$|\\\[)[ \t]*(?:\n|$)/.test(text);
}

/** Returns the position of a block formula within a paragraph, or -1. */
export function formulaWithin(paragraph: string): number {
  const end = paragraph.indexOf('\n\n');
  const near = end < 0 ? paragraph : paragraph.slice(0, end);
  for (const { index } of near.matchAll(/\n(?= {0,3}(?:\$\$|\\\[))/g)) {
    if (blockFormula(paragraph.slice(index + 1))) return index + 1;
  }
  return -1;
}

/**
 * Masks the formulas of a text for the search of emphasis marks. The result has the same length; masked is the text with code masked
 * already.
 */
export function withoutFormulas(text: string, masked: string): string {
  const begins = /[$\\]/g;
  let made = '';
  let from = 0;
  for (let found = begins.exec(text); found; found = begins.exec(text)) {
    const at = found.index;
    const dollar = found[0] === '$';
    // Escapes are masked by plus signs, and code by letters.
    const formula =
      masked[at] === (dollar ? '$' : '+') ? phraseFormula(text.slice(at), text.slice(0, at)) : undefined;
    if (formula) {
      made += masked.slice(from, at) + 'a'.repeat(formula.raw.length);
      from = begins.lastIndex = at + formula.raw.length;
    } else if (!dollar) begins.lastIndex = at + 2;
  }
  return made + masked.slice(from);
}
