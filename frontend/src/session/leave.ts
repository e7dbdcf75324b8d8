// Taking what is far above out of the page while the end is followed. A long answer is thousands of elements; to take them out at once
// keeps the page from being drawn for longer than a frame may take (25 ms of 33 when a tool call ended one and the next began), so they go
// in pieces, a few a frame, before their row does.

/** So many elements are taken out in one go. */
export const little = 150;

const sizeOf = (element: Element) => element.getElementsByTagName('*').length;

/**
 * The last part of an element that is little, or has nothing but what is written in one go, such as a page of code. The last and not the
 * first one: whatever stands behind what goes is placed and painted anew.
 */
function lastPart(whole: Element): Element {
  let part = whole;
  while (sizeOf(part) >= little && [...part.children].some((child) => child.childElementCount > 0))
    part = part.lastElementChild ?? part;
  return part;
}

/** Takes parts out from the end until the time is up; true when what is left may go at once. At least one goes each time. */
export function prune(whole: Element, timeIsUp: () => boolean): boolean {
  for (;;) {
    if (sizeOf(whole) <= little) return true;
    const part = lastPart(whole);
    if (part === whole) return true;
    part.remove();
    if (timeIsUp()) return false;
  }
}

/** The margin above what a row holds, which it shares with what stands above the row. */
function marginOf(row: Element): number {
  const first = row.firstElementChild;
  return first ? parseFloat(getComputedStyle(first).marginTop) || 0 : 0;
}

/**
 * The room that the first row takes, up to the next one. Told before it goes: to look afterwards where the next one stands would lay the
 * page out without that room, and the scroll position would be cut to what is left.
 */
export function roomOf(row: Element, next: Element): number {
  const top = row.getBoundingClientRect().top - marginOf(row);
  return next.getBoundingClientRect().top - marginOf(next) - top;
}

/** Keeps what a row holds as high as it is, so that nothing below it moves while its parts go. */
export function holdHeight(whole: HTMLElement): void {
  // And nothing more: to contain it would place and paint anew all that is in it.
  whole.style.height ||= `${whole.getBoundingClientRect().height}px`;
}
