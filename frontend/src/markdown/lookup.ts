import { candidates, known, lined, linkRef, unseen, type Ref } from './paths';
import type { Places } from './places';

// Finds the files that texts name.

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
/** Milliseconds for which paths are gathered before they are looked up, so that a text with many takes one call. */
const gathering = 20;
/** The largest number of paths of a call. */
const most = 200;
/** The largest number of paths that are known at once. */
const mostKnown = 2_000;

interface Known {
  at: number;
  there: Promise<boolean>;
  found: boolean;
}

/** Looks up files, many at once, and keeps what it learns. */
export class Lookup {
  readonly #places: Places;
  readonly #known = new Map<string, Known>();
  #due: { path: string; told: (there: boolean) => void }[] = [];

  constructor(places: Places) {
    this.#places = places;
  }

  #there(path: string): Promise<boolean> {
    const held = this.#known.get(path);
    if (held && (held.found || performance.now() - held.at < believed)) return held.there;
    if (this.#known.size > mostKnown) this.#known.clear();
    const there = new Promise<boolean>((told) => {
      if (this.#due.length === 0) setTimeout(() => this.#ask(), gathering);
      this.#due.push({ path, told });
    });
    const known = { at: performance.now(), there, found: false };
    this.#known.set(path, known);
    void there.then((found) => (known.found = found));
    return there;
  }

  #ask(): void {
    const due = this.#due.splice(0);
    for (let from = 0; from < due.length; from += most) {
      const asked = due.slice(from, from + most);
      void this.#places.existing(asked.map(({ path }) => path)).then(
        (found) => asked.forEach(({ path, told }) => told(found.has(path))),
        () => asked.forEach(({ told }) => told(false)),
      );
    }
  }

  /** Returns the first candidate path at which a file exists. */
  async find(ref: Ref): Promise<string | undefined> {
    const paths = candidates(ref, this.#places);
    const there = await Promise.all(paths.map((path) => this.#there(path)));
    return paths[there.indexOf(true)];
  }

  /** Returns the file that inline code names, if the file exists. */
  async ofCode(code: string): Promise<Ref | undefined> {
    const ref = codeRef(code);
    const path = ref && (await this.find(ref));
    return path === undefined ? undefined : { path, line: ref?.line };
  }

  /** Returns the file of a link. Where it does not exist that is its first candidate: the Files tab says so. */
  async ofLink(href: string): Promise<Ref | undefined> {
    const ref = linkRef(href);
    const [first, ...more] = ref ? candidates(ref, this.#places) : [];
    if (!ref || first === undefined) return undefined;
    return { path: more.length > 0 ? ((await this.find(ref)) ?? first) : first, line: ref.line };
  }
}

const lookups = new WeakMap<Places, Lookup>();

/** Returns the lookup of some places, which all texts there share. */
export function lookupOf(places: Places): Lookup {
  let lookup = lookups.get(places);
  if (!lookup) lookups.set(places, (lookup = new Lookup(places)));
  return lookup;
}
