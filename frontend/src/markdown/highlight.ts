// Asks a worker for the colours of code, and caches them. Code without an answer stays plain.

export interface Wanted {
  id: number;
  code: string;
  language: string;
}

/** Runs of text, each with the class of its colour, by line. */
export type Line = readonly (readonly [kind: string, text: string])[];

export interface Painted {
  id: number;
  lines: readonly Line[] | undefined;
}

const names: Record<string, string> = {
  bash: 'shellscript',
  cjs: 'javascript',
  console: 'shellscript',
  cs: 'csharp',
  dockerfile: 'docker',
  golang: 'go',
  h: 'c',
  htm: 'html',
  js: 'javascript',
  json5: 'json',
  jsonc: 'json',
  jsx: 'tsx',
  kt: 'kotlin',
  makefile: 'make',
  mjs: 'javascript',
  patch: 'diff',
  py: 'python',
  rs: 'rust',
  sh: 'shellscript',
  shell: 'shellscript',
  svg: 'xml',
  ts: 'typescript',
  yml: 'yaml',
  zsh: 'shellscript',
};

/** Returns the grammar for the info string of a fence. */
export function languageOf(info: string | undefined): string | undefined {
  const name = info
    ?.trim()
    .split(/[\s{,:]/)[0]
    ?.toLowerCase();
  if (!name) return undefined;
  return Object.hasOwn(names, name) ? names[name] : name;
}

/** Returns the grammar for a file name. */
export function languageOfPath(path: string): string | undefined {
  const name = (path.split('/').at(-1) ?? '').toLowerCase();
  if (name === 'makefile' || name === 'dockerfile') return languageOf(name);
  const dot = name.lastIndexOf('.');
  return dot < 0 ? undefined : languageOf(name.slice(dot + 1));
}

/** Longer code stays plain. */
const longest = 40_000;
/** The number of characters of code in the cache. Their colours take about twenty times as much memory. */
const kept = 300_000;

type Port = Pick<Worker, 'postMessage' | 'addEventListener'>;

export class Highlighter {
  #start: () => Port;
  #port: Port | undefined;
  #broken = false;
  #next = 0;
  #waiting = new Map<number, (lines: readonly Line[] | undefined) => void>();
  #held = new Map<string, Promise<readonly Line[] | undefined>>();
  #size = 0;

  constructor(start: () => Port) {
    this.#start = start;
  }

  /** Returns the coloured lines of the code; undefined when there are none. */
  paint(code: string, language: string): Promise<readonly Line[] | undefined> {
    if (this.#broken || code.length > longest) return Promise.resolve(undefined);
    const key = `${language}\n${code}`;
    const held = this.#held.get(key);
    if (held) return held;
    const answer = this.#ask(code, language);
    this.#held.set(key, answer);
    this.#size += key.length;
    // The oldest goes first; a Map remembers the order.
    for (const old of this.#held.keys()) {
      if (this.#size <= kept) break;
      this.#held.delete(old);
      this.#size -= old.length;
    }
    return answer;
  }

  #ask(code: string, language: string): Promise<readonly Line[] | undefined> {
    const port = (this.#port ??= this.#open());
    if (!port) return Promise.resolve(undefined);
    const id = this.#next++;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      port.postMessage({ id, code, language } satisfies Wanted);
    });
  }

  #open(): Port | undefined {
    try {
      const port = this.#start();
      port.addEventListener('message', (event) => {
        const { id, lines } = (event as MessageEvent<Painted>).data;
        this.#waiting.get(id)?.(lines);
        this.#waiting.delete(id);
      });
      port.addEventListener('error', () => this.#fail());
      return port;
    } catch {
      this.#fail();
      return undefined;
    }
  }

  #fail(): void {
    this.#broken = true;
    for (const resolve of this.#waiting.values()) resolve(undefined);
    this.#waiting.clear();
  }
}

export const highlighter = new Highlighter(
  () => new Worker(new URL('./highlight.worker.ts', import.meta.url), { type: 'module' }),
);
