// Passes the first value on at once, then at most one value per interval. The last value is always passed on.

/**
 * Reports the time of the next frame in milliseconds: callbacks, layout and paint. A hidden page has no frames. The timer fires as the
 * first task after the frame, at most a millisecond late. (A message channel would be faster, but WebKit's network process keeps some
 * memory for each channel: sixteen a second were 0.1 MiB a minute.)
 */
function nextDrawn(tell: (ms: number) => void): void {
  if (document.visibilityState === 'hidden') return;
  requestAnimationFrame(() => {
    const began = performance.now();
    setTimeout(() => tell(performance.now() - began));
  });
}

export class Throttle<T> {
  #every: number;
  #cost = 0;
  #drawing = 0;
  #drawn: (tell: (ms: number) => void) => void;
  #take: (value: T) => void;
  #last = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #waiting: { value: T } | undefined;

  constructor(every: number, take: (value: T) => void, drawn = nextDrawn) {
    this.#every = every;
    this.#take = take;
    this.#drawn = drawn;
  }

  push(value: T): void {
    this.#waiting = { value };
    if (this.#timer === undefined) this.#letThrough();
  }

  /**
   * Passes the waiting value on when it is due. The time of the last frame may be known only by then, so the due time is computed again.
   */
  #letThrough(): void {
    // Leaves three quarters of the time to others. An engine that is never idle postpones its garbage collection, and on a busy machine a
    // page grew by hundreds of megabytes.
    const due =
      this.#last +
      Math.max(this.#every, 5 * this.#cost, Math.min(3 * this.#drawing, 300)) -
      performance.now();
    if (due <= 0) this.flush();
    else this.#timer = setTimeout(() => this.#letThrough(), due);
  }

  /** Adds the cost of the last value in milliseconds. The throttle uses at most a sixth of the time. */
  took(ms: number): void {
    this.#cost += ms;
  }

  /** Passes the waiting value on now. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) this.#pass(waiting.value);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#waiting = undefined;
  }

  #pass(value: T): void {
    this.#last = performance.now(); // not affected by changes of the system clock
    this.#cost = this.#drawing = 0;
    this.#take(value);
    this.#drawn((ms) => (this.#drawing = ms));
  }
}
