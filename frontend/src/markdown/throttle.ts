// Lets a value through at once, then at most every so often, and the last one always.

/**
 * Tells how long the next frame takes: what is called in it, its layout, its drawing. None is drawn of a page that is hidden. A timer is the
 * first task after the frame, at most a millisecond late. (A message to ourselves would come sooner, but WebKit tells its network process of
 * each channel, which keeps a little of it for good: sixteen a second were 0.1 MiB a minute.)
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

  /** Lets what waits through when it is due. How long the frame has taken may be known only when it seems to be. */
  #letThrough(): void {
    // Three parts of four are left to others: an engine that is never idle puts off the collection of its garbage, and a page on a busy
    // machine grew by hundreds of megabytes.
    const due =
      this.#last +
      Math.max(this.#every, 5 * this.#cost, Math.min(3 * this.#drawing, 300)) -
      performance.now();
    if (due <= 0) this.flush();
    else this.#timer = setTimeout(() => this.#letThrough(), due);
  }

  /** What was let through has cost so many milliseconds: a sixth of the time is enough for it. */
  took(ms: number): void {
    this.#cost += ms;
  }

  /** Lets what waits through now. */
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
    this.#last = performance.now(); // which no clock that is set puts back
    this.#cost = this.#drawing = 0;
    this.#take(value);
    this.#drawn((ms) => (this.#drawing = ms));
  }
}
