// A request appears under the hands of somebody who types. For a moment its keys do nothing, so that an Enter or a digit meant for
// something else approves nothing. Where it takes the place of another card its buttons do nothing either: a second click would answer
// what nobody has read.

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

/** As long after a card has gone another one still counts as come in its place: a start that asks twice reads a directory in between. */
const placeFor = 2_000;
let gone = -Infinity;

/** A card goes. */
export function leavesPlace(now: number): void {
  gone = now;
}

/** Whether a card that is shown now takes the place of one that has just gone. */
export function takesPlace(now: number): boolean {
  return now - gone < placeFor;
}
