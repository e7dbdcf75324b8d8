import type { Attachment } from 'svelte/attachments';

// Lists of rows that are all as high as each other, of which a long one has only some in the page.

/**
 * Scrolls a list no further than it takes to see a row, which need not be in the page yet. It returns where the list stands then: the
 * list itself tells that a frame later, and a row has to be there before it can take the focus.
 */
export function intoView(list: HTMLElement, at: number, height: number): number {
  const top = at * height;
  if (top < list.scrollTop) list.scrollTop = top;
  if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
  return list.scrollTop;
}

/** Tells how high a row is, now and when the size of the text changes it. Not in whole pixels: over a hundred rows the rest adds up. */
export function measured(tell: (height: number) => void): Attachment<HTMLElement> {
  return (row) => {
    const look = () => {
      const { height } = row.getBoundingClientRect();
      if (height > 0) tell(height); // it has none while it is not shown
    };
    const sizes = new ResizeObserver(look);
    sizes.observe(row);
    look();
    return () => sizes.disconnect();
  };
}

/** Which rows are mounted when there are many: those in view and some around. */
export function visibleRows(
  count: number,
  top: number,
  height: number,
  row: number,
): { from: number; to: number } {
  const most = 200;
  if (count <= most) return { from: 0, to: count };
  const around = 20;
  // A list that has become shorter may still stand below its new end.
  const from = Math.max(0, Math.min(Math.floor(top / row), count) - around);
  return { from, to: Math.min(count, Math.ceil((top + height) / row) + around) };
}
