import { SvelteMap } from 'svelte/reactivity';
import type { Client } from '../api/client';
import { asApiError, type ApiError } from '../api/errors';
import type { Entry, EntryPage, Event, Request, Turn } from '../api/records';
import {
  applyEvents,
  applyPage,
  forget,
  forgetBelow,
  forgetNewest,
  plainItem,
  refresh,
  type Item,
  type Transcript,
} from './transcript';

/** An item with a signal for each part, so that a chunk of text updates the text alone. */
class LiveItem implements Item {
  readonly id: string;
  readonly seq: number;
  entry = $state.raw() as Entry;
  text = $state.raw('');
  clipped = $state.raw(0);

  constructor(entry: Entry) {
    const plain = plainItem(entry);
    this.id = plain.id;
    this.seq = plain.seq;
    this.entry = entry;
    this.text = plain.text;
    this.clipped = plain.clipped;
  }
}

const live = (entry: Entry): Item => new LiveItem(entry);

const pageSize = 200;
/** The number of entries in the first page. Sixty fill any view, and take a third of the time of a whole page. */
const firstPage = 60;
/** The server's limit of entries in a page. */
const mostAsked = 1_000;
/** The number of entries kept around the place where the person reads. */
const kept = 1_000;
/** The number of characters kept while the tail is followed, so that a long stream does not fill the memory. */
const keptText = 400_000;

/** The transcript of a session that is on the screen, or was a moment ago. */
export class SessionView implements Transcript {
  readonly id: string;
  items = $state.raw<readonly Item[]>([]);
  readonly turns = new SvelteMap<string, Turn>();
  next = $state.raw<number | undefined>();
  newer = $state.raw<number | undefined>();
  latest = 0;
  loaded = $state(false);
  loading = $state(false);
  loadingOlder = $state(false);
  loadingNewer = $state(false);
  error = $state.raw<ApiError | undefined>();
  /** Counts the entries that came at the end, for the pill with the number of new entries. */
  arrived = $state.raw(0);
  /** The last mounted sequence number while the person reads further up. Nothing above may be dropped. */
  reading: number | undefined;

  #client: Client;
  #held: Event[] = [];
  /** A fetch whose page replaces others. The next such fetch waits for it in a loop, because two may wait for the same. */
  #underway: Promise<void> | undefined;
  #requests: (requests: readonly Request[]) => void;

  constructor(id: string, client: Client, requests: (requests: readonly Request[]) => void) {
    this.id = id;
    this.#client = client;
    this.#requests = requests;
  }

  /** Fetches the tail. After a gap in the feed load fetches all held entries again, because any of them may have changed. */
  async load(signal?: AbortSignal): Promise<void> {
    this.#held = []; // from before the gap, as is a page that is being fetched
    while (this.#underway) await this.#underway;
    await this.#take(async () => {
      const { items, next } = this;
      const first = items[0];
      const last = items.at(-1);
      if (!first || !last || (this.reading === undefined && this.newer === undefined))
        return this.#client.entries(this.id, undefined, this.loaded ? pageSize : firstPage, signal);
      // The person reads elsewhere and stays there, so all held entries are fetched at once.
      const limit = Math.min(mostAsked, items.length + pageSize);
      let page = await this.#client.entriesAfter(this.id, first.seq - 1, limit, signal);
      while (page.newer !== undefined && page.newer < last.seq) {
        const before = page;
        page = await this.#client.entriesAfter(this.id, page.newer, limit, signal);
        page.items.unshift(...before.items);
        page.turns.unshift(...before.turns);
        page.requests.unshift(...before.requests);
      }
      return Object.assign(page, { next });
    }, 'anew');
  }

  /** Fetches the tail, wherever the person reads. */
  async toTail(): Promise<void> {
    while (this.#underway) await this.#underway;
    if (this.newer === undefined && this.loaded) return;
    await this.#take(() => this.#client.entries(this.id, undefined, firstPage), 'tail');
  }

  /** Fetches the entries around a sequence number, unless they are held. */
  async around(seq: number): Promise<void> {
    while (this.#underway) await this.#underway;
    if (this.items.some((item) => item.seq === seq)) return;
    await this.#take(() => this.#client.entriesAround(this.id, seq, firstPage), 'around');
  }

  /** Fetches and applies a page. Events wait until then, because they may touch the same entries. */
  async #take(
    ask: () => Promise<EntryPage>,
    place: 'tail' | 'around' | 'newer' | 'anew' | 'refresh',
  ): Promise<void> {
    let end: () => void = () => undefined;
    this.#underway = new Promise((done) => (end = done));
    this.loading = true;
    this.error = undefined;
    try {
      const page = await ask();
      this.#requests(page.requests);
      if (place === 'refresh') refresh(this, page, live);
      else applyPage(this, page, place, live);
      // The person reads at the end now. With the old place new entries would be dropped as lying below it.
      if (place === 'tail') this.reading = undefined;
    } catch (thrown) {
      this.error = asApiError(thrown);
      throw thrown;
    } finally {
      this.loading = false;
      this.#underway = undefined;
      end();
      this.apply(this.#held.splice(0));
    }
  }

  /** Fetches the page before the first held entry. */
  async loadOlder(): Promise<void> {
    if (this.loadingOlder || this.next === undefined) return;
    this.loadingOlder = true;
    try {
      while (this.#underway) await this.#underway;
      this.error = undefined; // also the error of the awaited fetch, because an error stops the fetching of pages
      const [before, held] = [this.next, this.#held];
      if (before === undefined) return;
      const page = await this.#client.entries(this.id, before, pageSize);
      // Other entries are held by now, or a gap came: the page no longer fits.
      if (this.next !== before || this.#held !== held) return;
      this.#requests(page.requests);
      applyPage(this, page, 'older', live);
      forgetNewest(this, kept);
    } catch (thrown) {
      this.error = asApiError(thrown);
    } finally {
      this.loadingOlder = false;
      this.apply(this.#held.splice(0));
    }
  }

  /** Fetches the page after the last held entry, unless that entry is the last of all. */
  async loadNewer(): Promise<void> {
    if (this.loadingNewer) return;
    this.loadingNewer = true;
    try {
      while (this.#underway) await this.#underway;
      const after = this.newer;
      if (after === undefined) return;
      await this.#take(() => this.#client.entriesAfter(this.id, after, pageSize), 'newer');
      forget(this, kept);
    } catch {
      // The view shows this.error with a button to try again.
    } finally {
      this.loadingNewer = false;
    }
  }

  apply(events: readonly Event[]): void {
    // A page that is being fetched may be older than these events. They are applied after the page, so that the page undoes none of them.
    if (this.loading || this.loadingOlder) {
      this.#held.push(...events);
      return;
    }
    const change = applyEvents(this, events, live);
    this.arrived += change.added;
    if (this.newer === undefined) {
      if (this.reading === undefined) forget(this, kept, keptText);
      else forgetBelow(this, this.reading, pageSize, 2 * kept, keptText);
    }
    if (change.gap !== undefined) void this.#heal(change.gap).catch(() => undefined);
  }

  /**
   * Fetches an entry again after an append did not fit. Such an entry may be far from the end, as the output of a long-running program is.
   */
  #heal(seq: number): Promise<void> {
    return this.#take(() => this.#client.entriesAround(this.id, seq, firstPage), 'refresh');
  }

  find(toolCallId: string): Item | undefined {
    return this.items.findLast((item) => item.entry.tool?.toolCallId === toolCallId);
  }
}
