/** Scrolls a list of rows that are all as high as each other no further than it takes to see one, which need not be in the page yet. */
export function intoView(list: HTMLElement, at: number, height: number): void {
  const top = at * height;
  if (top < list.scrollTop) list.scrollTop = top;
  if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
}
