import { getContext, setContext } from 'svelte';
import { SvelteSet } from 'svelte/reactivity';

// A text that a person decides on may scroll in a box, or come in pages. The card says so until the person could see the end of each.

const key = Symbol('unseen');

/** The parts of a decision whose end has not been in view yet. */
class Unseen {
  readonly #parts = new SvelteSet<symbol>();

  get any(): boolean {
    return this.#parts.size > 0;
  }

  leave(part: symbol): void {
    this.#parts.add(part);
  }

  reach(part: symbol): void {
    this.#parts.delete(part);
  }
}

export function provideUnseen(): Unseen {
  return setContext(key, new Unseen());
}

export function unseenParts(): Unseen | undefined {
  return getContext<Unseen | undefined>(key);
}

/** Counts the lines of a scrolling box below the visible part. The box counts as seen once the count was 0, until the box gets more text. */
export class Below {
  lines = $state(0);
  readonly #part = Symbol('box');
  readonly #unseen: Unseen | undefined;
  /** The height of the content when its end was in view; more content has to be seen, too. */
  #seen = -1;

  constructor(unseen: Unseen | undefined) {
    this.#unseen = unseen;
  }

  /** An attachment for the scrolling box. */
  readonly watch = (box: HTMLElement) => {
    const look = () => {
      const rest = box.scrollHeight - box.clientHeight - box.scrollTop;
      const height = parseFloat(getComputedStyle(box.querySelector('pre, .inner') ?? box).lineHeight) || 20;
      this.lines = rest < height / 2 ? 0 : Math.ceil(rest / height);
      if (this.lines === 0) this.#seen = box.scrollHeight;
      if (box.scrollHeight <= this.#seen) this.#unseen?.reach(this.#part);
      else this.#unseen?.leave(this.#part);
    };
    const sizes = new ResizeObserver(look);
    sizes.observe(box);
    for (const child of box.children) sizes.observe(child);
    box.addEventListener('scroll', look, { passive: true });
    return () => {
      sizes.disconnect();
      box.removeEventListener('scroll', look);
      this.#unseen?.reach(this.#part);
    };
  };
}
