// Two presses of Escape stop a turn. A single press too often has another purpose.

const within = 2_000;

export class DoubleEscape {
  #first = -Infinity;

  /** Reports whether this press is the second. */
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
