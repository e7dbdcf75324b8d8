// A request appears under the hands of somebody who types or points. For a moment neither keys nor presses answer it, so that an Enter, a
// digit or a press that was meant for something else approves nothing. A press waits as well after the answers have moved: what stands
// under the pointer then is not what was aimed at.

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

/** Where the answers stand on the screen. */
export type Place = Pick<DOMRectReadOnly, 'left' | 'top' | 'width' | 'height'>;

export class PressGuard {
  #place: Place | undefined;
  #until = Infinity;

  /** Takes where the answers stand now. It is true when they are new there: presses begin to count after the guard. */
  stands({ left, top, width, height }: Place, now: number): boolean {
    const near = (a: number, b: number) => Math.abs(a - b) < 2;
    const was = this.#place;
    if (
      was &&
      near(was.left, left) &&
      near(was.top, top) &&
      near(was.width, width) &&
      near(was.height, height)
    )
      return false;
    this.#place = { left, top, width, height };
    this.#until = now + guardFor;
    return true;
  }

  allows(now: number): boolean {
    return now >= this.#until;
  }
}

/**
 * Calls back when an element has moved or changed its size, whatever has moved it. The observer's root is cut to the place of the element, so
 * that nothing has to look while nothing moves.
 */
export function watchPlace(element: HTMLElement, moved: () => void): () => void {
  let place: IntersectionObserver | undefined;
  let ratio = 1;

  function watch() {
    place?.disconnect();
    const { left, top, right, bottom } = element.getBoundingClientRect();
    const { clientWidth, clientHeight } = document.documentElement;
    const edges = [top, clientWidth - right, clientHeight - bottom, left];
    let first = true;
    place = new IntersectionObserver(
      ([entry]) => {
        if (first) {
          first = false;
          const seen = entry?.intersectionRatio ?? 0;
          // A part of it may be out of the window: the threshold is then what is in it.
          if (seen > 0 && Math.abs(seen - ratio) > 0.001) {
            ratio = seen;
            watch();
          }
          return;
        }
        ratio = 1;
        moved();
        watch();
      },
      { rootMargin: edges.map((edge) => `${String(-Math.floor(edge))}px`).join(' '), threshold: ratio },
    );
    place.observe(element);
  }

  const size = new ResizeObserver(() => {
    moved();
    watch();
  });
  size.observe(element);
  watch();
  return () => {
    place?.disconnect();
    size.disconnect();
  };
}
