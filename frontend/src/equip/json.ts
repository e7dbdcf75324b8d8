// Reads JSON with the line of every value, so that an error can name its line. The engine's parser gives no lines and accepts no comments;
// settings of other programs have comments and trailing commas.

export interface JsonFault {
  code: 'comma' | 'comment' | 'deep' | 'empty' | 'end' | 'key' | 'number' | 'string' | 'twice' | 'unexpected';
  line: number;
  column: number;
  /** The text at the fault. */
  found: string;
}

type Json =
  | {
      ok: true;
      value: unknown;
      /** Lines by path. Paths are spelt as the server spells them: args[0], env."TOKEN", oauth.scope. */
      lines: ReadonlyMap<string, number>;
    }
  | { ok: false; fault: JsonFault };

const deepest = 64;

class Stop {
  constructor(
    readonly code: JsonFault['code'],
    readonly at: number,
    readonly found: string,
  ) {}
}

/** Reads a text. loose accepts comments and trailing commas. */
export function readJson(text: string, loose = false): Json {
  const reader = new Reader(text, loose);
  try {
    return { ok: true, value: reader.whole(), lines: reader.lines };
  } catch (thrown) {
    if (!(thrown instanceof Stop)) throw thrown;
    const before = text.slice(0, thrown.at).split('\n');
    return {
      ok: false,
      fault: {
        code: thrown.code,
        found: thrown.found,
        line: before.length,
        column: (before.at(-1)?.length ?? 0) + 1,
      },
    };
  }
}

class Reader {
  readonly lines = new Map<string, number>();
  #at = 0;
  #line = 1;
  #counted = 0;

  constructor(
    readonly text: string,
    readonly loose: boolean,
  ) {}

  whole(): unknown {
    if (this.text.startsWith('\ufeff')) this.#at = 1;
    this.#space();
    if (this.#at >= this.text.length) throw this.#stop('empty');
    const value = this.#value('', 0);
    this.#space();
    if (this.#at < this.text.length) throw this.#stop('unexpected');
    return value;
  }

  #value(path: string, depth: number): unknown {
    if (depth > deepest) throw this.#stop('deep');
    this.lines.set(path, this.#lineHere());
    const sign = this.text[this.#at];
    if (sign === '{') return this.#object(path, depth);
    if (sign === '[') return this.#array(path, depth);
    if (sign === '"') return this.#string();
    for (const [word, value] of words) {
      if (!this.text.startsWith(word, this.#at)) continue;
      this.#at += word.length;
      return value;
    }
    return this.#number();
  }

  #object(path: string, depth: number): unknown {
    const members: [string, unknown][] = [];
    const names = new Set<string>();
    for (this.#open(); !this.#closed('}', members.length);) {
      if (this.text[this.#at] !== '"') throw this.#stop('key');
      const start = this.#at;
      const name = this.#string();
      if (names.has(name)) throw new Stop('twice', start, name);
      names.add(name);
      this.#space();
      if (this.text[this.#at] !== ':') throw this.#stop('unexpected');
      this.#at++;
      this.#space();
      const before = path ? `${path}.` : '';
      // In paths the names of variables and headers are quoted.
      this.lines.set(before + JSON.stringify(name), this.#lineHere());
      members.push([name, this.#value(before + name, depth + 1)]);
    }
    return Object.fromEntries(members); // fromEntries treats __proto__ like any other name
  }

  #array(path: string, depth: number): unknown {
    const items: unknown[] = [];
    for (this.#open(); !this.#closed(']', items.length);) {
      items.push(this.#value(`${path}[${items.length}]`, depth + 1));
    }
    return items;
  }

  #open(): void {
    this.#at++;
    this.#space();
  }

  /** Reads the comma before the next member, or the end. */
  #closed(end: string, count: number): boolean {
    this.#space();
    const comma = this.#at;
    if (count > 0 && this.text[this.#at] === ',') {
      this.#at++;
      this.#space();
      if (this.text[this.#at] !== end) return false;
      if (!this.loose) throw new Stop('comma', comma, ',');
    }
    if (this.text[this.#at] === end) {
      this.#at++;
      return true;
    }
    if (count > 0 || this.#at >= this.text.length) throw this.#stop('unexpected');
    return false;
  }

  #string(): string {
    const found = /"(?:[^"\\\n]|\\[^\n])*"/y;
    found.lastIndex = this.#at;
    const raw = found.exec(this.text)?.[0];
    try {
      const value: unknown = raw === undefined ? undefined : JSON.parse(raw);
      if (raw === undefined || typeof value !== 'string') throw this.#stop('string');
      this.#at += raw.length;
      return value;
    } catch {
      throw this.#stop('string');
    }
  }

  #number(): number {
    const found = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])/y;
    found.lastIndex = this.#at;
    const raw = found.exec(this.text)?.[0];
    if (raw === undefined)
      throw this.#stop(/[-\d]/.test(this.text[this.#at] ?? '') ? 'number' : 'unexpected');
    this.#at += raw.length;
    return Number(raw);
  }

  #space(): void {
    for (;;) {
      const found = /[ \t\r\n]*/y;
      found.lastIndex = this.#at;
      this.#at += found.exec(this.text)?.[0].length ?? 0;
      if (!this.text.startsWith('//', this.#at) && !this.text.startsWith('/*', this.#at)) return;
      if (!this.loose) throw this.#stop('comment');
      const line = this.text[this.#at + 1] === '/';
      const end = this.text.indexOf(line ? '\n' : '*/', this.#at + 2);
      if (end < 0 && !line) throw new Stop('end', this.text.length, '');
      this.#at = end < 0 ? this.text.length : end + (line ? 1 : 2);
    }
  }

  /** Counts lines from the position of the last call, so that the text is read only once. */
  #lineHere(): number {
    for (; this.#counted < this.#at; this.#counted++) if (this.text[this.#counted] === '\n') this.#line++;
    return this.#line;
  }

  #stop(code: JsonFault['code']): Stop {
    const rest = this.text.slice(this.#at);
    if (rest === '' && code !== 'empty') return new Stop('end', this.#at, '');
    return new Stop(code, this.#at, /^(?:\w+|"[^"\n]*"?|.)/su.exec(rest)?.[0].slice(0, 40) ?? '');
  }
}

const words: readonly (readonly [string, unknown])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
];
