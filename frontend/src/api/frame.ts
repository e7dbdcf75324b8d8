// Collects what arrives and hands it on once per animation frame, in order.

/** Asks for a call before the next paint; while the page is hidden there is none, so a timer does. */
function nextFrame(run: () => void): void {
  if (document.visibilityState === 'hidden') {
    setTimeout(run, 100);
    return;
  }
  let done = false;
  const once = () => {
    if (done) return;
    done = true;
    clearTimeout(timer);
    run();
  };
  // A window that is covered may get no frames though it counts as visible.
  const timer = setTimeout(once, 500);
  requestAnimationFrame(once);
}

export class FrameBatch<T> {
  #waiting: T[] = [];
  #asked = false;
  #take: (batch: T[]) => void;
  #schedule: (run: () => void) => void;

  constructor(take: (batch: T[]) => void, schedule: (run: () => void) => void = nextFrame) {
    this.#take = take;
    this.#schedule = schedule;
  }

  push(items: readonly T[]): void {
    for (const item of items) this.#waiting.push(item);
    if (this.#asked || this.#waiting.length === 0) return;
    this.#asked = true;
    this.#schedule(() => this.flush());
  }

  /** Hands on what waits at once. */
  flush(): void {
    this.#asked = false;
    if (this.#waiting.length === 0) return;
    const batch = this.#waiting;
    this.#waiting = [];
    this.#take(batch);
  }

  clear(): void {
    this.#waiting = [];
  }
}
