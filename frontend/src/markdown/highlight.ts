// Asks a worker for the colours of code, and caches them. Code without an answer stays plain.

export interface Wanted {
  id: number;
  code: string;
  language: string;
  /** The number of a block that grows: the code goes on where the last code of the same number ended. */
  stream?: number;
}

/** Nothing more comes of a block that grew. */
export interface Closed {
  closed: number;
}

/** Runs of text, each with the class of its colour, by line. */
export type Line = readonly (readonly [kind: string, text: string])[];

export interface Painted {
  id: number;
  lines: readonly Line[] | undefined;
}

const names: Record<string, string> = {
  bash: 'shellscript',
  batch: 'bat',
  'c++': 'cpp',
  cc: 'cpp',
  cjs: 'javascript',
  clj: 'clojure',
  cmd: 'bat',
  console: 'shellscript',
  cs: 'csharp',
  csproj: 'xml',
  cts: 'typescript',
  cxx: 'cpp',
  dockerfile: 'docker',
  env: 'dotenv',
  erl: 'erlang',
  ex: 'elixir',
  exs: 'elixir',
  fish: 'shellscript',
  fs: 'fsharp',
  golang: 'go',
  gql: 'graphql',
  gradle: 'groovy',
  h: 'c',
  hpp: 'cpp',
  hs: 'haskell',
  htm: 'html',
  jl: 'julia',
  js: 'javascript',
  json5: 'json',
  jsonc: 'json',
  jsonl: 'json',
  jsx: 'tsx',
  kt: 'kotlin',
  kts: 'kotlin',
  makefile: 'make',
  md: 'markdown',
  mdx: 'markdown',
  mjs: 'javascript',
  mk: 'make',
  ml: 'ocaml',
  mts: 'typescript',
  objc: 'objective-c',
  objectivec: 'objective-c',
  patch: 'diff',
  pl: 'perl',
  protobuf: 'proto',
  ps1: 'powershell',
  pwsh: 'powershell',
  py: 'python',
  pyi: 'python',
  rb: 'ruby',
  rs: 'rust',
  sc: 'scala',
  sh: 'shellscript',
  shell: 'shellscript',
  sol: 'solidity',
  svg: 'xml',
  terraform: 'hcl',
  tex: 'latex',
  tf: 'hcl',
  tfvars: 'hcl',
  ts: 'typescript',
  vim: 'viml',
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
export const longest = 40_000;
/** The number of characters of code in the cache. Their colours take about twenty times as much memory. */
const kept = 300_000;

type Port = Pick<Worker, 'postMessage' | 'addEventListener'>;

/** A block of code that grows. */
export interface CodeStream {
  /** Returns the further lines, coloured; undefined when there are no colours. The answer must have come before the next call. */
  next: (code: string) => Promise<readonly Line[] | undefined>;
  close: () => void;
}

export class Highlighter {
  #start: () => Port;
  #port: Port | undefined;
  #broken = false;
  #next = 0;
  #streams = 0;
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

  /** Begins to colour a block that grows. */
  stream(language: string): CodeStream {
    const stream = this.#streams++;
    return {
      next: (code) => (this.#broken ? Promise.resolve(undefined) : this.#ask(code, language, stream)),
      close: () => this.#port?.postMessage({ closed: stream } satisfies Closed),
    };
  }

  #ask(code: string, language: string, stream?: number): Promise<readonly Line[] | undefined> {
    const port = (this.#port ??= this.#open());
    if (!port) return Promise.resolve(undefined);
    const id = this.#next++;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      const wanted: Wanted = { id, code, language };
      port.postMessage(stream === undefined ? wanted : { ...wanted, stream });
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
