/**
 * What is written in forms and not saved yet, by form. It outlives the screens that it is written in, since a key, a click in the sidebar
 * or a notification leads away from them without asking. Kept in memory alone: there are secrets in it.
 */
export const kept = new Map<string, unknown>();

/** What was left of a form. */
export function left<T>(form: string): T | undefined {
  return kept.get(form) as T | undefined;
}

/**
 * Keeps what is written in a form. Made with its component: now gives what is written, from the state that the form has, and undefined
 * where nothing is. A form begins with what is left of it.
 */
export class Unsaved<T> {
  #form: string;
  /** What this one has kept last: another one of the form may have come since, which keeps its own. */
  #mine: unknown;

  constructor(form: string, now: () => T | undefined) {
    this.#form = form;
    this.#mine = kept.get(form);
    $effect(() => {
      const words = now();
      if (words === undefined) this.drop();
      else kept.set(form, (this.#mine = $state.snapshot(words)));
    });
  }

  get left(): T | undefined {
    return left<T>(this.#form);
  }

  /** It was saved, or given up; the latter can be taken back by what this returns. */
  drop(): (() => void) | undefined {
    const { left } = this;
    if (left === undefined || left !== this.#mine) return undefined;
    kept.delete(this.#form);
    return () => kept.set(this.#form, left);
  }
}
