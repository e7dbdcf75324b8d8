// Lets a value through at once, then at most every so often, and the last one always.

export class Throttle<T> {
  #every: number;
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
    const due = this.#last + this.#every - Date.now();
    if (due <= 0) {
      this.#pass(value);
      return;
    }
    this.#waiting = { value };
    this.#timer = setTimeout(() => this.flush(), due);
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
    this.#take(value);
  }
}
