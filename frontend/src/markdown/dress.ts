// A page of code draws itself again when its colours come. A module that adds something to the drawn page, such as links, gives the page a
// function that adds it after each drawing.

export type Dress = (page: HTMLElement) => void;

const pages = new WeakMap<Element, (dress: Dress | undefined) => void>();

/** Tells the page how it is dressed after each drawing. It returns false for an element that is no page. */
export function dress(page: Element, how: Dress | undefined): boolean {
  const take = pages.get(page);
  take?.(how);
  return take !== undefined;
}

/** Called by a page, which then takes how it is dressed. */
export function takesDress(page: Element, take: (dress: Dress | undefined) => void): void {
  pages.set(page, take);
}
