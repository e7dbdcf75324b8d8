// Escape stops a turn only when it is pressed twice: once is too easily meant for something else.

const within = 2_000;

export class DoubleEscape {
  #first = -Infinity;

  /** Whether this press is the second one. */
  press(now: number): boolean {
    const second = now - this.#first <= within;
    this.#first = second ? -Infinity : now;
    return second;
  }

  reset(): void {
    this.#first = -Infinity;
  }
}

export const escapeWithin = within;
