import { candidates, known, lined, linkRef, unseen, type Ref } from './paths';
import type { Places } from './places';

// Finds the files that a message names, when a person points at a name.

/** Returns inline code as a path, where it looks like a path. */
export function codeRef(code: string): Ref | undefined {
  if (code.length > 300 || unseen.test(code) || /[<>"|*?`=;]|:\/\/|^[-$~@\s]|\s$/.test(code))
    return undefined;
  const [, hashed, named] = /^(.+)#L(\d{1,7})(?:-L?\d{1,7})?$/.exec(code) ?? [];
  const ref = hashed === undefined ? lined(code) : { path: hashed, line: Number(named) || undefined };
  const { path } = ref;
  const extended =
    /[^./\\\s]\.[A-Za-z][A-Za-z\d]{0,11}$/.test(path) || /(?:^|[/\\])\.[a-z][\w.-]+$/i.test(path);
  const within = /[/\\]/.test(path);
  if (/\s/.test(path) ? !(extended && within) : !(extended || within || known.test(path))) return undefined;
  return /[/\\]$/.test(path) ? undefined : ref;
}

/** Milliseconds for which an absent file counts as absent: the agent may be about to write the file. */
const believed = 10_000;

/** Looks up files and caches the results. */
export class Lookup {
  readonly #places: Places;
  readonly #known = new Map<string, { at: number; there: Promise<boolean> }>();

  constructor(places: Places) {
    this.#places = places;
  }

  #there(path: string): Promise<boolean> {
    const held = this.#known.get(path);
    if (held && performance.now() - held.at < believed) return held.there;
    if (this.#known.size > 500) this.#known.clear();
    const there = this.#places.exists(path).catch(() => false);
    this.#known.set(path, { at: performance.now(), there });
    return there;
  }

  /** Returns the first candidate path at which a file exists. */
  async find(ref: Ref): Promise<string | undefined> {
    for (const path of candidates(ref, this.#places)) if (await this.#there(path)) return path;
    return undefined;
  }

  /** Marks inline code that names an existing file. */
  async mark(code: Element): Promise<void> {
    const ref = codeRef(code.textContent ?? '');
    if (ref && (await this.find(ref)) !== undefined) code.classList.add('there');
  }

  /** Opens the file that inline code names, if the file exists. */
  async openCode(code: string): Promise<void> {
    const ref = codeRef(code);
    const path = ref && (await this.find(ref));
    if (path !== undefined) this.#places.open(path, ref?.line);
  }

  /** Opens the file of a link. The Files tab says so when the file does not exist. */
  async openLink(href: string): Promise<void> {
    const ref = linkRef(href);
    const [first, ...more] = ref ? candidates(ref, this.#places) : [];
    if (!ref || first === undefined) return;
    const path = more.length > 0 ? ((await this.find(ref)) ?? first) : first;
    this.#places.open(path, ref.line);
  }
}
