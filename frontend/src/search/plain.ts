import type { Hit } from '../api/records';

// Removes Markdown's markup from an excerpt. An excerpt is a line cut out of a text, so no parser can read it: the other half of a mark may
// lie beyond the cut, and line ends, with their meaning, are gone.

type Part = Hit['excerpt'][number];

const cutBefore = /^… /;
const cutAfter = / …$/;
/** Matches the neighbour of an underscore that is a mark. Within a word an underscore is a letter. */
const edge = /^[^\p{L}\p{N}_]?$/u;
const escaped = /\\([\\`*_{}[\]()#+\-.!|>~])/g;
const fence = /(?:^|\s)(`{3,}|~{3,})([\w+#.-]*)(?=\s|$)/g;
const span = /(`+)([^`]+)\1/g;
const link = /(!?\[)([^[\]]*)(\]\([^()\s]*(?:\s+"[^"]*")?\)|\]\([^()\s]*(?= …$))/g;
const address = /(<)(https?:[^\s<>]+)(>)/g;
const pairs = [/(\*{2,3}|_{2,3}|~~)(\S(?:.*?\S)?)\1/g, /(\*|_)([^\s*_](?:[^*_]*[^\s*_])?)\1/g];
const half = /\*{2,3}|_{2,3}|~~|`/g;
const heading = /(?:^\s*(?:#{1,6}|[>*+-])|\s#{2,6})(?=\s)/g;
const ruled = /\|\s*:?-{3,}:?\s*\|/;
const bars = /\|(?:[\s:|-]*\|)?/g;

class Line {
  readonly text: string;
  readonly #hit: boolean[] = [];
  /** The replacement of each character: the same character, another, or nothing. */
  readonly #shown: string[];
  /** The characters that must stay: code and escaped characters. */
  readonly #solid: boolean[];

  constructor(parts: readonly Part[]) {
    this.text = parts.map((part) => part.text).join('');
    for (const { text, hit } of parts) for (let n = 0; n < text.length; n++) this.#hit.push(hit === true);
    this.#shown = this.text.split('');
    this.#solid = this.#shown.map(() => false);
  }

  /** Replaces characters, unless a hit is among them. */
  drop(from: number, length: number, instead = '') {
    if (this.#hit.slice(from, from + length).includes(true)) return;
    for (let n = from; n < from + length; n++) this.#shown[n] = n === from ? instead : '';
    this.keep(from, length);
  }

  keep(from: number, length: number) {
    this.#solid.fill(true, from, from + length);
  }

  each(pattern: RegExp, act: (match: RegExpExecArray, at: number) => void) {
    for (const match of this.text.matchAll(pattern)) if (!this.#solid[match.index]) act(match, match.index);
  }

  /** Removes the marks around a text. */
  unwrap(pattern: RegExp, fits: (match: RegExpExecArray) => boolean = () => true) {
    this.each(pattern, (match, at) => {
      const [whole, open = '', inner = ''] = match;
      const close = at + open.length + inner.length;
      if (this.#solid[close] || !fits(match)) return;
      this.drop(at, open.length);
      this.drop(close, at + whole.length - close);
    });
  }

  parts(): Part[] {
    const parts: Part[] = [];
    let last = ' ';
    this.#shown.forEach((sign, n) => {
      if (sign === '' || (sign === ' ' && last === ' ')) return;
      const hit = this.#hit[n] === true;
      const part = parts.at(-1);
      if (part && (part.hit ?? false) === hit) part.text += sign;
      else parts.push(hit ? { text: sign, hit } : { text: sign });
      last = sign;
    });
    return parts;
  }
}

export function plain(excerpt: readonly Part[]): Part[] {
  const line = new Line(excerpt);
  const { text } = line;
  line.each(escaped, (_, at) => {
    line.drop(at, 1);
    line.keep(at + 1, 1);
  });
  code(line);
  line.unwrap(link);
  line.unwrap(address);
  for (const pair of pairs)
    line.unwrap(
      pair,
      ({ 0: whole, 1: mark = '', index }) =>
        !mark.startsWith('_') ||
        (edge.test(text.charAt(index - 1)) && edge.test(text.charAt(index + whole.length))),
    );
  // The other half of a single mark lies beyond the cut, where the excerpt is cut on that side.
  line.each(half, (match, at) => {
    const opens = /\S/.test(text.charAt(at + match[0].length)) && edge.test(text.charAt(at - 1));
    const closes = /\S/.test(text.charAt(at - 1)) && edge.test(text.charAt(at + match[0].length));
    if ((opens && cutAfter.test(text)) || (closes && cutBefore.test(text))) line.drop(at, match[0].length);
  });
  line.each(heading, ({ 0: whole }, at) => line.drop(at, whole.length));
  table(line);
  return line.parts();
}

/** Removes the marks of code and keeps the content. */
function code(line: Line) {
  let open: number | undefined;
  line.each(fence, ({ 0: whole, 1: ticks = '', 2: language = '' }, at) => {
    const mark = at + whole.length - ticks.length - language.length;
    if (open !== undefined) line.keep(open, mark - open);
    open = open === undefined ? mark + ticks.length + language.length : undefined;
    line.drop(mark, ticks.length);
    line.drop(mark + ticks.length, language.length);
  });
  if (open !== undefined) line.keep(open, line.text.length - open);
  line.each(span, ({ 1: ticks = '', 2: inner = '' }, at) => {
    line.drop(at, ticks.length);
    line.keep(at + ticks.length, inner.length);
    line.drop(at + ticks.length + inner.length, ticks.length);
  });
}

/** Separates cells by dots, and removes the rule below the head. */
function table(line: Line) {
  const { text } = line;
  if (!ruled.test(text) && (text.match(/ \| /g)?.length ?? 0) < 4) return;
  line.each(bars, ({ 0: whole }, at) => {
    const within = /[^\s…]/.test(text.slice(0, at)) && /[^\s…]/.test(text.slice(at + whole.length));
    line.drop(at, whole.length, within ? '·' : '');
  });
}
