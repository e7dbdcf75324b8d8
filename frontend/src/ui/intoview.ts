import type { Attachment } from 'svelte/attachments';

// Long lists with rows of equal height, of which only some are mounted.

/**
 * Scrolls a list just far enough to show a row, which may not be mounted yet. It returns the new scroll position, because the scroll event
 * comes a frame later, and a row must be mounted before it can take the focus.
 */
export function intoView(list: HTMLElement, at: number, height: number): number {
  const top = at * height;
  if (top < list.scrollTop) list.scrollTop = top;
  if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
  return list.scrollTop;
}

/**
 * Reports the height of a row, now and after a change of the text size. The height is not rounded, because over a hundred rows the error
 * adds up.
 */
export function measured(tell: (height: number) => void): Attachment<HTMLElement> {
  return (row) => {
    const look = () => {
      const { height } = row.getBoundingClientRect();
      if (height > 0) tell(height); // a hidden row has no height
    };
    const sizes = new ResizeObserver(look);
    sizes.observe(row);
    look();
    return () => sizes.disconnect();
  };
}

/** Returns the range of rows to mount: those in view and some around. */
export function visibleRows(
  count: number,
  top: number,
  height: number,
  row: number,
): { from: number; to: number } {
  const most = 200;
  if (count <= most) return { from: 0, to: count };
  const around = 20;
  // A list that has become shorter may still be scrolled below its new end.
  const from = Math.max(0, Math.min(Math.floor(top / row), count) - around);
  return { from, to: Math.min(count, Math.ceil((top + height) / row) + around) };
}
