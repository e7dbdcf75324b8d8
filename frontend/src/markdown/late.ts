// Parts of the renderer that most texts do without: they are loaded with the first text that needs them, so that the page starts without
// them. Until then such a text is shown as if they were not there, and as it should be once they are.

class Late<T> {
  readonly #import: () => Promise<T>;
  #part: T | undefined;
  #asked: Promise<void> | undefined;
  readonly #waiting = new Set<() => void>();

  constructor(load: () => Promise<T>) {
    this.#import = load;
  }

  /** Loads it, unless that was done. What could not be had is asked for again by who needs it next. */
  load(): Promise<void> {
    return (this.#asked ??= this.#import()
      .then((part) => {
        this.#part = part;
        for (const tell of this.#waiting) tell();
        this.#waiting.clear();
      })
      .catch(() => (this.#asked = undefined)));
  }

  /** The part for somebody who needs it now; undefined while it is on its way. */
  get now(): T | undefined {
    if (!this.#part) void this.load();
    return this.#part;
  }

  /** Has somebody called once it is there, if it is not by now; the returned function ends it. */
  when(tell: () => void): () => void {
    if (!this.#part) this.#waiting.add(tell);
    return () => this.#waiting.delete(tell);
  }
}

/** What reads formulas, emphasis in texts without blanks, files within fences, rows with too many pipes, and paths. */
export const extras = new Late(() => import('./extras'));

/** What draws formulas. */
export const drawing = new Late(() => import('./formulas'));
