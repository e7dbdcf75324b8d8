import { candidates, known, lined, linkRef, unseen, type Ref } from './paths';
import type { Places } from './places';

// Files that are named in an answer, as far as somebody points at them.

/** What code within a line names as a path, where it looks like one. */
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

/** How long it is believed that a file is not there: the agent may be about to write it. */
const believed = 10_000;

/** What was asked for once is not asked for again: each place in a text is looked up when somebody points at it, and no sooner. */
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

  /** The first of its places at which a file is. */
  async find(ref: Ref): Promise<string | undefined> {
    for (const path of candidates(ref, this.#places)) if (await this.#there(path)) return path;
    return undefined;
  }

  /** Marks code that names a file which is there. */
  async mark(code: Element): Promise<void> {
    const ref = codeRef(code.textContent ?? '');
    if (ref && (await this.find(ref)) !== undefined) code.classList.add('there');
  }

  /** Opens what code names, if it is there. */
  async openCode(code: string): Promise<void> {
    const ref = codeRef(code);
    const path = ref && (await this.find(ref));
    if (path !== undefined) this.#places.open(path, ref?.line);
  }

  /** Opens what a link leads to; what is not there is told where it would be shown. */
  async openLink(href: string): Promise<void> {
    const ref = linkRef(href);
    const [first, ...more] = ref ? candidates(ref, this.#places) : [];
    if (!ref || first === undefined) return;
    const path = more.length > 0 ? ((await this.find(ref)) ?? first) : first;
    this.#places.open(path, ref.line);
  }
}
