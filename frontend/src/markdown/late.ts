// Parts of the renderer that few texts need. A part is loaded with the first text that needs it, so that the page starts without it. Until
// then that text is rendered as if the part did not exist, and afterwards again.

class Late<T> {
  readonly #import: () => Promise<T>;
  #part: T | undefined;
  #asked: Promise<void> | undefined;
  readonly #waiting = new Set<() => void>();

  constructor(load: () => Promise<T>) {
    this.#import = load;
  }

  /** Loads the part once. After a failure the next caller tries again. */
  load(): Promise<void> {
    return (this.#asked ??= this.#import()
      .then((part) => {
        this.#part = part;
        for (const tell of this.#waiting) tell();
        this.#waiting.clear();
      })
      .catch(() => (this.#asked = undefined)));
  }

  /** Returns the part, or starts to load it and returns undefined. */
  get now(): T | undefined {
    if (!this.#part) void this.load();
    return this.#part;
  }

  /** Calls tell when the part is loaded, unless it is loaded already. The returned function cancels that. */
  when(tell: () => void): () => void {
    if (!this.#part) this.#waiting.add(tell);
    return () => this.#waiting.delete(tell);
  }
}

/** Parses formulas, emphasis in texts without spaces, files within fences, table rows with too many pipes, and paths. */
export const extras = new Late(() => import('./extras'));

/** Draws formulas. */
export const drawing = new Late(() => import('./formulas'));
