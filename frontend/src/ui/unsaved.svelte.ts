/**
 * Unsaved text of forms by form. The texts outlive their screens, because a key, a click in the sidebar or a notification leaves a screen
 * without asking. They are kept in memory only, since they may contain secrets.
 */
export const kept = new Map<string, unknown>();

/** Restores a discarded text, unless a newer text of the form exists. It reports whether it did. */
export type Restore = () => boolean;

/** Returns the unsaved text of a form. */
export function left<T>(form: string): T | undefined {
  return kept.get(form) as T | undefined;
}

/**
 * Keeps the unsaved text of a form. A component creates an Unsaved while it is initialized; now returns the current text, or undefined when
 * nothing is unsaved. The form begins with the text that is left.
 */
export class Unsaved<T> {
  #form: string;
  /** The text that this instance has kept last. A later instance of the same form keeps its own. */
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

  /** Forgets the text after it was saved or discarded. */
  drop(): Restore | undefined {
    const { left } = this;
    if (left === undefined || left !== this.#mine) return undefined;
    kept.delete(this.#form);
    return () => {
      if (kept.has(this.#form)) return false;
      kept.set(this.#form, left);
      return true;
    };
  }
}
