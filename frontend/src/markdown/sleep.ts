import { flushSync, getContext, setContext, untrack } from 'svelte';

// Parts of long messages sleep while they are far from the visible area: their elements leave the page, and an empty box keeps their
// height. An hour's work gives tens of thousands of elements, and an engine walks all of them when a single element changes. (In WebKit
// `content-visibility` saved neither memory nor layout time.)

interface Sleeper {
  readonly asleep: boolean;
  /** Removes the elements and keeps a box of the given height. */
  sleep: (height: number) => void;
  wake: () => void;
}

/** Parts within this distance of the visible area, in pixels, are awake. */
const margin = 1_500;

const key = Symbol('sleep');

/** Lets the parts of messages sleep in the surrounding element of role "log", which scrolls. */
export function provideSleep(): Sleep {
  return setContext(key, new Sleep());
}

/** Returns undefined where every part stays awake. */
export function sleepHere(): Sleep | undefined {
  return getContext<Sleep | undefined>(key);
}

class Sleep {
  #parts = new Map<Element, Sleeper>();
  /** Awake parts that are far from the visible area. */
  #due = new Set<Element>();
  #root: HTMLElement | undefined;
  #observer: IntersectionObserver | undefined;
  #lookedAt = 0;
  #looks = false;

  /** Lets a mounted part sleep and wake. The returned function ends that. */
  watch(element: Element, part: Sleeper): () => void {
    this.#open(element);
    this.#parts.set(element, part);
    this.#observer?.observe(element);
    if (untrack(() => part.asleep)) this.#soon();
    return () => {
      this.#observer?.unobserve(element);
      this.#parts.delete(element);
      this.#due.delete(element);
      if (this.#parts.size === 0) this.#close();
    };
  }

  /** Wakes the parts below an element, before a search in the element. */
  wakeIn(element: Element): void {
    this.#wake([...this.#parts.keys()].filter((one) => element.contains(one)));
  }

  #open(element: Element): void {
    if (this.#root) return;
    this.#root = element.closest<HTMLElement>('[role=log]') ?? undefined;
    if (!this.#root) return;
    this.#observer = new IntersectionObserver((entries) => this.#crossed(entries), {
      root: this.#root,
      rootMargin: `${margin}px 0px`,
    });
    this.#root.addEventListener('scroll', this.#scrolled, { passive: true });
    document.addEventListener('selectionchange', this.#selected);
  }

  #close(): void {
    this.#observer?.disconnect();
    this.#root?.removeEventListener('scroll', this.#scrolled);
    document.removeEventListener('selectionchange', this.#selected);
    this.#observer = this.#root = undefined;
  }

  #crossed(entries: readonly IntersectionObserverEntry[]): void {
    const near: Element[] = [];
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) {
        this.#due.delete(target);
        near.push(target);
      } else if (this.#parts.get(target)?.asleep === false) {
        this.#due.add(target);
      }
    }
    this.#wake(near);
    this.#layDown();
  }

  /** Looks at once after a far jump: the observer reports a frame late, and that frame would be blank. */
  #scrolled = () => {
    const at = this.#root?.scrollTop ?? 0;
    if (Math.abs(at - this.#lookedAt) < margin / 2) return;
    this.#lookedAt = at;
    this.#look();
  };

  #soon(): void {
    if (this.#looks) return;
    this.#looks = true;
    // Nothing can be mounted within an effect.
    queueMicrotask(() => {
      this.#looks = false;
      this.#look();
    });
  }

  #look(): void {
    const frame = this.#root?.getBoundingClientRect();
    if (!frame) return;
    const near = (element: Element) => {
      const { top, bottom } = element.getBoundingClientRect();
      return bottom > frame.top - margin && top < frame.bottom + margin;
    };
    this.#wake(
      [...this.#parts.keys()].filter((one) => this.#parts.get(one)?.asleep && one.isConnected && near(one)),
    );
  }

  /** Wakes the selected parts, so that they can be copied whole. */
  #selected = () => {
    const selection = document.getSelection();
    if (!selection || selection.isCollapsed) {
      if (this.#due.size > 0) this.#layDown();
      return;
    }
    this.#wake([...this.#parts.keys()].filter((one) => selection.containsNode(one, true)));
  };

  #wake(elements: readonly Element[]): void {
    const woken = elements.filter((one) => this.#parts.get(one)?.asleep);
    if (woken.length === 0 || !this.#root) return;
    const edge = this.#root.getBoundingClientRect().top;
    const before = woken.map((one) => one.getBoundingClientRect());
    for (const one of woken) {
      this.#parts.get(one)?.wake();
      // A part that was woken far from the visible area is observed anew, so that it sleeps again later.
      this.#observer?.unobserve(one);
      this.#observer?.observe(one);
    }
    flushSync();
    // Scrolls by the difference, so that the visible text stays in place when parts above turn out higher or lower.
    let grown = 0;
    woken.forEach((one, at) => {
      const { top = 0, height = 0 } = before[at] ?? {};
      if (top < edge) grown += one.getBoundingClientRect().height - height;
    });
    if (Math.abs(grown) >= 1) this.#root.scrollTop += grown;
  }

  #layDown(): void {
    const selection = document.getSelection();
    // A part with the begin of a selection stays awake too, because the selection may be extended.
    const used = (element: Element) =>
      element.contains(document.activeElement) || selection?.containsNode(element, true);
    const free = [...this.#due].filter((one) => !used(one));
    const heights = free.map((one) => one.getBoundingClientRect().height);
    free.forEach((one, at) => {
      const height = heights[at] ?? 0;
      if (height === 0) return; // the part is not displayed
      this.#due.delete(one);
      this.#parts.get(one)?.sleep(height);
    });
  }
}
