import type { Place } from '../app.svelte';

// Where a person reads in a conversation, for the next start of the window, which may come at any moment: it is shown there again. Who
// follows the end has no such place.

const key = 'deskhand.reading';
const most = 20;
type Kept = [session: string, seq: number];

const isKept = (one: unknown): one is Kept =>
  Array.isArray(one) && typeof one[0] === 'string' && Number.isSafeInteger(one[1]);

function read(): Kept[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
    return Array.isArray(kept) ? kept.filter(isKept) : [];
  } catch {
    return [];
  }
}

export function placeOf(session: string): Place | undefined {
  const seq = read().find(([id]) => id === session)?.[1];
  return seq === undefined ? undefined : { seq, look: 'place' };
}

/** Nothing forgets the place. */
export function keepPlace(session: string, seq: number | undefined): void {
  const others = read().filter(([id]) => id !== session);
  const kept = seq === undefined ? others : [[session, seq], ...others];
  localStorage.setItem(key, JSON.stringify(kept.slice(0, most)));
}
