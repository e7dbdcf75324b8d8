import type { Found, Hit } from '../api/records';

// What a search found, as the screen shows it.

/** The hits of one conversation. */
export interface Group {
  session: string;
  /** The newest, which tells what all of them share. */
  first: Hit;
  hits: readonly Hit[];
}

/** Hits by conversation: the one with the newest first, and the newest first in each. */
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

/** The page after what is held. An entry that changed meanwhile may stand in both. */
export function extended(held: Results, page: Found): Results {
  const known = new Set(held.items.map((hit) => hit.entry));
  const items = [...held.items, ...page.items.filter((hit) => !known.has(hit.entry))];
  return { items, ...(page.next === undefined ? {} : { next: page.next }) };
}

/** The first page anew. What was fetched beyond it stays, where both still meet. */
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
