// Collects values and passes them on once per animation frame, in order.

/** Calls run before the next paint. A hidden page paints nothing, so there a timer calls run. */
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
  // A covered window may get no frames although its visibilityState is "visible".
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

  /** Passes on at once all values that wait. */
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
