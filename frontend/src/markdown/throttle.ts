// Lets a value through at once, then at most every so often, and the last one always.

export class Throttle<T> {
  #every: number;
  #cost = 0;
  #take: (value: T) => void;
  #last = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #waiting: { value: T } | undefined;

  constructor(every: number, take: (value: T) => void) {
    this.#every = every;
    this.#take = take;
  }

  push(value: T): void {
    if (this.#timer !== undefined) {
      this.#waiting = { value };
      return;
    }
    const due = this.#last + Math.max(this.#every, 5 * this.#cost) - Date.now();
    if (due <= 0) {
      this.#pass(value);
      return;
    }
    this.#waiting = { value };
    this.#timer = setTimeout(() => this.flush(), due);
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
    this.#last = Date.now();
    this.#cost = 0;
    this.#take(value);
  }
}
