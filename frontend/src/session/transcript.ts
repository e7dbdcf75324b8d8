import type { Append, Entry, Event, Turn } from '../api/records';

// The transcript as the window holds it, and how events change it. The state of a session is computed elsewhere; here ordered
// patches are applied. No Svelte: items are plain objects here, and reactive ones where the screen makes them.

/** One entry. Its text is apart, because it grows by appends while the rest stands. */
export interface Item {
  readonly id: string;
  readonly seq: number;
  entry: Entry;
  text: string;
  /** How many bytes of the text are not here. */
  clipped: number;
}

export interface Transcript {
  /** In order of seq, without gaps; replaced, never changed in place. */
  items: readonly Item[];
  readonly turns: Map<string, Turn>;
  /** What to pass as `before` for older entries; undefined when the first one is here. */
  next: number | undefined;
  /** What to pass as `after` for newer entries; undefined when the last one is here, and what is new comes by events. */
  newer: number | undefined;
  /** The last seq that was heard of. It is beyond the items while `newer` is there. */
  latest: number;
  /** A first page has come. */
  loaded: boolean;
}

export interface Change {
  /** How many are new at the end, also where the end is not held. */
  added: number;
  /** An append did not fit: the text of the entry with this seq is to be fetched again. */
  gap?: number;
}

export type MakeItem = (entry: Entry) => Item;

export function plainItem(entry: Entry): Item {
  return { id: entry.id, seq: entry.seq, entry, text: entry.text ?? '', clipped: entry.clipped ?? 0 };
}

/** Applies events in their order. Those of other sessions and of unknown types are ignored. */
export function applyEvents(transcript: Transcript, events: readonly Event[], make: MakeItem): Change {
  const draft = new Draft(transcript, make);
  for (const event of events) {
    switch (event.type) {
      case 'entry.upsert':
        draft.upsert(event.data as Entry);
        break;
      case 'entry.append':
        draft.append(event.data as Append);
        break;
      case 'entry.removed':
        draft.remove((event.data as { id: string }).id);
        break;
      case 'turn.upsert': {
        const turn = event.data as Turn;
        transcript.turns.set(turn.id, turn);
        break;
      }
    }
  }
  return draft.done();
}

/**
 * Takes a page of entries: the newest, or those around a place, which replace what was there; those of after a gap, of before which
 * nothing stays; or those that stand before or after what is there.
 */
export function applyPage(
  transcript: Transcript,
  page: { items: readonly Entry[]; turns: readonly Turn[]; next?: number; newer?: number },
  place: 'tail' | 'around' | 'older' | 'newer' | 'anew',
  make: MakeItem,
): void {
  if (place === 'anew') transcript.turns.clear();
  for (const turn of page.turns) {
    // A turn in an older page may have ended since: what is held came later.
    if (place !== 'older' || !transcript.turns.has(turn.id)) transcript.turns.set(turn.id, turn);
  }
  const known = new Map(transcript.items.map((item) => [item.id, item]));
  if (place === 'older') {
    const fresh = page.items.filter((entry) => !known.has(entry.id)).map(make);
    transcript.items = [...fresh, ...transcript.items];
    transcript.next = page.next;
    return;
  }
  transcript.latest = Math.max(transcript.latest, page.items.at(-1)?.seq ?? 0);
  if (place === 'newer') {
    const fresh = page.items.filter((entry) => !known.has(entry.id)).map(make);
    transcript.items = [...transcript.items, ...fresh];
    transcript.newer = page.newer;
    return;
  }
  // Where the page reaches back into what is held, what stands before it may stay: the person may be reading there.
  const joined = place === 'tail' && transcript.loaded && page.items.some((entry) => known.has(entry.id));
  const first = page.items[0]?.seq ?? 0;
  const older = joined ? transcript.items.filter((item) => item.seq < first) : [];
  const fresh = page.items.map((entry) => {
    const item = known.get(entry.id);
    if (!item) return make(entry);
    put(item, entry);
    return item;
  });
  transcript.items = [...older, ...fresh];
  if (!joined) transcript.next = page.next;
  transcript.newer = page.newer;
  transcript.loaded = true;
}

/** Brings entries that are held, or stand between such, up to date. */
export function refresh(
  transcript: Transcript,
  page: { items: readonly Entry[]; turns: readonly Turn[] },
  make: MakeItem,
): void {
  for (const turn of page.turns) transcript.turns.set(turn.id, turn);
  const draft = new Draft(transcript, make);
  for (const entry of page.items) draft.upsert(entry);
  draft.done();
}

/** Forgets the oldest items, which can be fetched again: those beyond a number, and those beyond so many characters. */
export function forget(transcript: Transcript, keep: number, characters = Infinity): void {
  const { items } = transcript;
  let from = items.length;
  for (let sum = 0; from > 0 && items.length - from < keep; from--) {
    sum += items[from - 1]?.text.length ?? 0;
    if (sum > characters && items.length - from >= fewest) break;
  }
  // Not one by one: each time all that is mounted is gone through.
  if (from === 0 || from < items.length * slack) return;
  transcript.items = items.slice(from);
  transcript.next = transcript.items[0]?.seq;
}

/** So many are kept however long they are. */
const fewest = 20;
/** And so much more is kept before any goes. */
const slack = 0.1;

/** Forgets the newest items, which can be fetched again: what is new comes with their page from then on. */
export function forgetNewest(transcript: Transcript, keep: number): void {
  if (transcript.items.length <= keep) return;
  transcript.items = transcript.items.slice(0, keep);
  transcript.newer = transcript.items.at(-1)?.seq;
}

/**
 * Forgets what stands below the item with this seq, the last that is mounted where somebody reads further up: once more than so many are
 * held, or there are more characters than that below it. Nothing above goes, nothing that can be seen, and no page right below it: the
 * one that was just fetched would be fetched again, for ever.
 */
export function forgetBelow(
  transcript: Transcript,
  seq: number,
  page: number,
  most: number,
  characters: number,
): void {
  const { items } = transcript;
  let to = items.length;
  for (let sum = 0; to > 0 && (items[to - 1]?.seq ?? 0) > seq;) {
    sum += items[--to]?.text.length ?? 0;
    if (sum > characters) most = 0;
  }
  if (to > 0 && items.length > most) forgetNewest(transcript, to + page);
}

function put(item: Item, entry: Entry): void {
  item.entry = entry;
  item.text = entry.text ?? '';
  item.clipped = entry.clipped ?? 0;
}

/** So many from the end on are looked through one by one. */
const near = 32;

/** What several events change, written back to the transcript once. */
class Draft {
  #transcript: Transcript;
  #make: MakeItem;
  #items: Item[] | undefined;
  /** Made when one is looked for that is not among the last. */
  #index: Map<string, Item> | undefined;
  #last: number;
  #added = 0;
  #gap: number | undefined;

  constructor(transcript: Transcript, make: MakeItem) {
    this.#transcript = transcript;
    this.#make = make;
    this.#last = transcript.items.at(-1)?.seq ?? -Infinity;
  }

  /** What streams in belongs to the end: an index of a thousand items in each frame would be most of what is left behind by it. */
  #find(id: string): Item | undefined {
    const items = this.#items ?? this.#transcript.items;
    for (let at = items.length - 1; !this.#index && at >= 0 && at >= items.length - near; at--) {
      if (items[at]?.id === id) return items[at];
    }
    this.#index ??= new Map(items.map((item) => [item.id, item]));
    return this.#index.get(id);
  }

  upsert(entry: Entry): void {
    const item = this.#find(entry.id);
    if (item) {
      put(item, entry);
      return;
    }
    if (this.#transcript.newer !== undefined && entry.seq > this.#last) {
      // Newer than what is held: it comes with its page.
      if (entry.seq > this.#transcript.latest) this.#added++;
      this.#transcript.latest = Math.max(this.#transcript.latest, entry.seq);
      return;
    }
    const items = (this.#items ??= [...this.#transcript.items]);
    const made = this.#make(entry);
    if (entry.seq > this.#last) {
      items.push(made);
      this.#last = entry.seq;
      this.#transcript.latest = entry.seq;
      this.#added++;
    } else {
      // Older than what is held: it comes with its page.
      if (this.#transcript.next !== undefined && entry.seq < (items[0]?.seq ?? 0)) return;
      items.splice(place(items, entry.seq), 0, made);
    }
    this.#index?.set(entry.id, made);
  }

  append({ id, field, text, offset }: Append): void {
    const item = this.#find(id);
    if (!item || field !== 'text') return;
    if (item.clipped > 0) {
      item.clipped += new TextEncoder().encode(text).length;
      return;
    }
    const have = item.text.length;
    if (offset > have) {
      this.#gap = item.seq;
      return;
    }
    if (offset + text.length > have) item.text += text.slice(have - offset);
  }

  remove(id: string): void {
    if (!this.#find(id)) return;
    this.#index?.delete(id);
    this.#items = (this.#items ?? [...this.#transcript.items]).filter((item) => item.id !== id);
  }

  done(): Change {
    if (this.#items) this.#transcript.items = this.#items;
    return { added: this.#added, ...(this.#gap === undefined ? {} : { gap: this.#gap }) };
  }
}

/** Where an entry of this seq belongs. */
function place(items: readonly Item[], seq: number): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((items[middle]?.seq ?? 0) < seq) low = middle + 1;
    else high = middle;
  }
  return low;
}
