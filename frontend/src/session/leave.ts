// Removes rows far above the visible area while the end is followed. A long answer has thousands of elements, and removing them at once
// took longer than a frame (25 ms of 33 when one tool call ended and the next began). So a few parts go in each frame, then the row.

/** The largest number of elements that are removed at once. */
export const little = 150;

const sizeOf = (element: Element) => element.getElementsByTagName('*').length;

/**
 * Returns the last part of an element that is small enough, or cannot be split, such as a page of code. The last and not the first, because
 * an engine lays out everything after a removed part again.
 */
function lastPart(whole: Element): Element {
  let part = whole;
  while (sizeOf(part) >= little && [...part.children].some((child) => child.childElementCount > 0))
    part = part.lastElementChild ?? part;
  return part;
}

/** Removes parts from the end until timeIsUp, at least one in each call. It returns true when the rest may go at once. */
export function prune(whole: Element, timeIsUp: () => boolean): boolean {
  for (;;) {
    if (sizeOf(whole) <= little) return true;
    const part = lastPart(whole);
    if (part === whole) return true;
    part.remove();
    if (timeIsUp()) return false;
  }
}

/** Returns the margin above a row's content, which the row shares with the row above. */
function marginOf(row: Element): number {
  const first = row.firstElementChild;
  return first ? parseFloat(getComputedStyle(first).marginTop) || 0 : 0;
}

/**
 * Returns the height of the first row, to be read before its removal. Measuring afterwards would lay out the page without the row, and the
 * engine would clamp the scroll position.
 */
export function roomOf(row: Element, next: Element): number {
  const top = row.getBoundingClientRect().top - marginOf(row);
  return next.getBoundingClientRect().top - marginOf(next) - top;
}

/** Fixes the height of a row, so that nothing below moves while its parts go. */
export function holdHeight(whole: HTMLElement): void {
  // Only the height: containment would lay out and paint all of the row's content again.
  whole.style.height ||= `${whole.getBoundingClientRect().height}px`;
}
