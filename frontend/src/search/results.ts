import type { Found, Hit } from '../api/records';

// The results of a search as the screen shows them.

/** The hits in one session. */
interface Group {
  session: string;
  /** The newest hit, with the values that all hits share. */
  first: Hit;
  hits: readonly Hit[];
}

/** Groups hits by session, the newest first in each group and among the groups. */
export function groups(hits: readonly Hit[]): Group[] {
  const found = new Map<string, { session: string; first: Hit; hits: Hit[] }>();
  for (const hit of hits) {
    const group = found.get(hit.session);
    if (group) group.hits.push(hit);
    else found.set(hit.session, { session: hit.session, first: hit, hits: [hit] });
  }
  return [...found.values()];
}

export type Results = Pick<Found, 'items' | 'next'>;

/** Appends the next page. An entry that changed meanwhile may be in both. */
export function extended(held: Results, page: Found): Results {
  const known = new Set(held.items.map((hit) => hit.entry));
  const items = [...held.items, ...page.items.filter((hit) => !known.has(hit.entry))];
  return { items, ...(page.next === undefined ? {} : { next: page.next }) };
}

/** Replaces the first page. Later pages stay where they still join the new page. */
export function renewed(held: Results, page: Found): Results {
  const last = page.items.at(-1);
  const at = last && page.next !== undefined ? held.items.findIndex((hit) => hit.entry === last.entry) : -1;
  if (at < 0) return { items: page.items, ...(page.next === undefined ? {} : { next: page.next }) };
  const fresh = new Set(page.items.map((hit) => hit.entry));
  const rest = held.items.slice(at + 1).filter((hit) => !fresh.has(hit.entry));
  if (rest.length === 0)
    return { items: page.items, ...(page.next === undefined ? {} : { next: page.next }) };
  return { items: [...page.items, ...rest], ...(held.next === undefined ? {} : { next: held.next }) };
}
