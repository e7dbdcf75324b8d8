import { flushSync, getContext, setContext, untrack } from 'svelte';

// Parts of long messages sleep while nobody is near: their elements are out of the page, and their room stays. A message of an hour's
// work is tens of thousands of elements, and an engine goes through all of them when one changes. (`content-visibility` keeps them: it
// spared neither memory nor the time that laying them out takes in WebKit.)

export interface Sleeper {
  readonly asleep: boolean;
  /** Takes the elements out; the room of so many pixels stays. */
  sleep: (height: number) => void;
  wake: () => void;
}

/** What is so many pixels from what is seen is awake. */
const margin = 1_500;

const key = Symbol('sleep');

/** Lets the parts of messages sleep that stand in what scrolls: the element of role "log" around them. */
export function provideSleep(): Sleep {
  return setContext(key, new Sleep());
}

/** Nothing where every part stays awake. */
export function sleepHere(): Sleep | undefined {
  return getContext<Sleep | undefined>(key);
}

export class Sleep {
  #parts = new Map<Element, Sleeper>();
  /** Far from what is seen, and not asleep yet. */
  #due = new Set<Element>();
  #root: HTMLElement | undefined;
  #observer: IntersectionObserver | undefined;
  #lookedAt = 0;
  #looks = false;

  /** Has a part that is mounted sleep and wake; the returned function ends it. */
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

  /** Wakes what is asleep below an element: something is looked for in it. */
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

  /** Far jumps: the observer tells of them a frame late, which would be a blank one. */
  #scrolled = () => {
    const at = this.#root?.scrollTop ?? 0;
    if (Math.abs(at - this.#lookedAt) < margin / 2) return;
    this.#lookedAt = at;
    this.#look();
  };

  #soon(): void {
    if (this.#looks) return;
    this.#looks = true;
    // Within an effect nothing can be mounted at once.
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

  /** What is selected is there to be copied, whole. */
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
      // What was woken far from what is seen, to be found or copied, is looked at again, and sleeps again.
      this.#observer?.unobserve(one);
      this.#observer?.observe(one);
    }
    flushSync();
    // What is read stays where it is, however high the parts above it turn out to be.
    let grown = 0;
    woken.forEach((one, at) => {
      const { top = 0, height = 0 } = before[at] ?? {};
      if (top < edge) grown += one.getBoundingClientRect().height - height;
    });
    if (Math.abs(grown) >= 1) this.#root.scrollTop += grown;
  }

  #layDown(): void {
    const selection = document.getSelection();
    // Also where a selection only begins: it may be extended from there.
    const used = (element: Element) =>
      element.contains(document.activeElement) || selection?.containsNode(element, true);
    const free = [...this.#due].filter((one) => !used(one));
    const heights = free.map((one) => one.getBoundingClientRect().height);
    free.forEach((one, at) => {
      const height = heights[at] ?? 0;
      if (height === 0) return; // it is not displayed
      this.#due.delete(one);
      this.#parts.get(one)?.sleep(height);
    });
  }
}
