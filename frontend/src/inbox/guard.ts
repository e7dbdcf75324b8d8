// A request appears under the hands of somebody who types. For a moment its keys do nothing, so that an Enter or a digit meant for
// something else approves nothing.

export const guardFor = 400;

export class KeyGuard {
  #until = Infinity;

  /** Something new stands there: its keys begin to count after the guard. */
  show(now: number): void {
    this.#until = now + guardFor;
  }

  /** Whether a key press counts. A key that is held down never does: it was pressed for something before. */
  allows(now: number, repeat: boolean): boolean {
    return !repeat && now >= this.#until;
  }
}
