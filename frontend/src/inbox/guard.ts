// A request may appear while a person types or points. For guardFor milliseconds neither keys nor presses answer the request, so that an
// Enter, a digit or a press that was meant for something else approves nothing. Presses also wait after the answers have moved, because
// another answer may be under the pointer.

export const guardFor = 400;

export class KeyGuard {
  #until = Infinity;

  /** Called when a request appears: keys are ignored until guardFor milliseconds later. */
  show(now: number): void {
    this.#until = now + guardFor;
  }

  /** Reports whether a key press counts. A key held down never counts, because it was pressed before. */
  allows(now: number, repeat: boolean): boolean {
    return !repeat && now >= this.#until;
  }
}

/** The position and size of the answers on the screen. */
type Place = Pick<DOMRectReadOnly, 'left' | 'top' | 'width' | 'height'>;

export class PressGuard {
  #place: Place | undefined;
  #until = Infinity;

  /**
   * Records the place of the answers. When the place has changed, stands returns true, and presses are ignored until guardFor milliseconds
   * later.
   */
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
 * Calls moved when an element has moved or changed its size, for any reason. An IntersectionObserver with the element's place as its root
 * does that without polling.
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
        const now = element.getBoundingClientRect();
        const since = now.left !== left || now.top !== top || now.right !== right || now.bottom !== bottom;
        if (first && !since) {
          first = false;
          const seen = entry?.intersectionRatio ?? 0;
          // When a part of the element is outside the window, the visible part is the threshold.
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
