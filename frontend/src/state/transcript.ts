import type { Append, Entry, Event, Turn } from '../api/records';

// The transcript in the window, and how events change it. The server computes the state of a session; these functions apply its ordered
// patches. They know no Svelte: items are plain objects here, and the screen passes a function that makes reactive items.

/** An entry. Its text is separate, because the text grows by appends while the rest stays. */
export interface Item {
  readonly id: string;
  readonly seq: number;
  entry: Entry;
  text: string;
  /** The number of bytes of the text that were not sent. */
  clipped: number;
}

export interface Transcript {
  /** Sorted by seq, without gaps. The array is replaced, never changed in place. */
  items: readonly Item[];
  readonly turns: Map<string, Turn>;
  /** The value of `before` for older entries; undefined when the first entry is held. */
  next: number | undefined;
  /** The value of `after` for newer entries; undefined when the last entry is held and new entries come by events. */
  newer: number | undefined;
  /** The last known sequence number. It is beyond the items while `newer` is set. */
  latest: number;
  /** A first page has been applied. */
  loaded: boolean;
}

export interface Change {
  /** The number of new entries at the end, even if the end is not held. */
  added: number;
  /** The sequence number of an entry whose text has a gap and must be fetched again. */
  gap?: number;
}

type MakeItem = (entry: Entry) => Item;

export function plainItem(entry: Entry): Item {
  return { id: entry.id, seq: entry.seq, entry, text: entry.text ?? '', clipped: entry.clipped ?? 0 };
}

/** Applies events in order. Events of other sessions and of unknown types are ignored. */
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
 * Applies a page of entries. "tail" and "around" replace the items; "anew" comes after a gap and replaces the turns too; "older" and
 * "newer" extend the items.
 */
export function applyPage(
  transcript: Transcript,
  page: { items: readonly Entry[]; turns: readonly Turn[]; next?: number; newer?: number },
  place: 'tail' | 'around' | 'older' | 'newer' | 'anew',
  make: MakeItem,
): void {
  if (place === 'anew') transcript.turns.clear();
  for (const turn of page.turns) {
    // A turn in an older page may have ended since: the held record is newer.
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
  // Where the tail joins the held items, the items before it stay, because the person may be reading there.
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

/** Updates entries that are held, or lie between held entries. */
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

/** Drops the oldest items beyond a number of items or characters. They can be fetched again. */
export function forget(transcript: Transcript, keep: number, characters = Infinity): void {
  const { items } = transcript;
  let from = items.length;
  for (let sum = 0; from > 0 && items.length - from < keep; from--) {
    sum += items[from - 1]?.text.length ?? 0;
    if (sum > characters && items.length - from >= fewest) break;
  }
  // Dropped in batches, because each change walks all mounted items.
  if (from === 0 || from < items.length * slack) return;
  transcript.items = items.slice(from);
  transcript.next = transcript.items[0]?.seq;
}

/** The number of items that are kept however long they are. */
const fewest = 20;
/** The share of items above the limit before any are dropped. */
const slack = 0.1;

/** Drops the newest items. New entries then come with a page instead of by events. */
export function forgetNewest(transcript: Transcript, keep: number): void {
  if (transcript.items.length <= keep) return;
  transcript.items = transcript.items.slice(0, keep);
  transcript.newer = transcript.items.at(-1)?.seq;
}

/**
 * Drops the items below a person's view once there are more than `most` items, or more than `characters` below the view; seq is the last
 * mounted item. A page right below the view stays: without it that page would be fetched and dropped for ever.
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

/** The number of items from the end that are searched without an index. */
const near = 32;

/** Collects the changes of several events and writes them to the transcript once. */
class Draft {
  #transcript: Transcript;
  #make: MakeItem;
  #items: Item[] | undefined;
  /** Built when an item is searched that is not among the last. */
  #index: Map<string, Item> | undefined;
  #last: number;
  #added = 0;
  #gap: number | undefined;

  constructor(transcript: Transcript, make: MakeItem) {
    this.#transcript = transcript;
    this.#make = make;
    this.#last = transcript.items.at(-1)?.seq ?? -Infinity;
  }

  /** Streamed text belongs to the last items. An index of a thousand items in each frame would be most of a stream's garbage. */
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
      // The entry is newer than the held items and comes with its page.
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
      // The entry is older than the held items and comes with its page.
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

/** Returns the index at which an entry of this seq belongs. */
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
