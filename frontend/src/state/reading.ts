import { store } from '../ui/storage';

// Stores the reading position in a session for the next start of the window. A person who follows the end has no position.

/** A row of a conversation to show: a find of the search, or the row where the person was reading. */
export interface Place {
  seq: number;
  look: 'found' | 'place';
  /** The part of the row above the visible region, from 0 to 1. */
  into?: number;
}

const key = 'deskhand.reading';
const most = 20;
type Kept = [session: string, seq: number, into: number];

const isKept = (one: unknown): one is Kept =>
  Array.isArray(one) && typeof one[0] === 'string' && Number.isSafeInteger(one[1]) && Number.isFinite(one[2]);

function read(): Kept[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
    return Array.isArray(kept) ? kept.filter(isKept) : [];
  } catch {
    return [];
  }
}

export function readAt(session: string): Place | undefined {
  const kept = read().find(([id]) => id === session);
  return kept && { seq: kept[1], look: 'place', into: kept[2] };
}

/** undefined removes the position. */
export function keepReadAt(session: string, at: { seq: number; into: number } | undefined): void {
  const others = read().filter(([id]) => id !== session);
  const kept = at ? [[session, at.seq, at.into], ...others] : others;
  store(key, JSON.stringify(kept.slice(0, most)));
}
