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

/** An item whose parts are signals of their own: a chunk of text touches the text and nothing else. */
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
/** Fills any view, and takes a third of the time: what is asked for when a person waits for a place. */
const firstPage = 60;
/** The most that the server gives at once. */
const mostAsked = 1_000;
/** How many entries are kept: those around what the person reads. */
const kept = 1_000;
/** And so many characters of their texts, while the tail is followed: what streams all day must not fill the window. */
const keptText = 400_000;

/** One conversation that is shown, or was a moment ago. */
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
  /** Counts entries that came at the end, for the pill that says how many are new. */
  arrived = $state.raw(0);
  /** The last seq that is mounted while the person reads further up: nothing above it may be dropped. */
  reading: number | undefined;

  #client: Client;
  #held: Event[] = [];
  /** A page that replaces others: the next one waits until there is none, and then begins at once, since two may wait for the same. */
  #underway: Promise<void> | undefined;
  #requests: (requests: readonly Request[]) => void;

  constructor(id: string, client: Client, requests: (requests: readonly Request[]) => void) {
    this.id = id;
    this.#client = client;
    this.#requests = requests;
  }

  /** Fetches the tail; also what heals a gap: anything that is held may have changed, or be gone. */
  async load(signal?: AbortSignal): Promise<void> {
    this.#held = []; // it is of before the gap, as is a page that is under way
    while (this.#underway) await this.#underway;
    await this.#take(async () => {
      const { items, next } = this;
      const first = items[0];
      const last = items.at(-1);
      if (!first || !last || (this.reading === undefined && this.newer === undefined))
        return this.#client.entries(this.id, undefined, this.loaded ? pageSize : firstPage, signal);
      // The person reads elsewhere, and stays there; all that is held is asked for at once.
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

  /** Fetches the tail, wherever the person was. */
  async toTail(): Promise<void> {
    while (this.#underway) await this.#underway;
    if (this.newer === undefined && this.loaded) return;
    await this.#take(() => this.#client.entries(this.id, undefined, firstPage), 'tail');
  }

  /** Fetches what stands around a place, unless it is held. */
  async around(seq: number): Promise<void> {
    while (this.#underway) await this.#underway;
    if (this.items.some((item) => item.seq === seq)) return;
    await this.#take(() => this.#client.entriesAround(this.id, seq, firstPage), 'around');
  }

  /** Takes a page that may touch what events touch as well: they wait meanwhile. */
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
      // Whoever asked for the end reads there now: what came would be forgotten as though it were below the place that was left.
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

  /** Fetches the page before the first entry held. */
  async loadOlder(): Promise<void> {
    if (this.loadingOlder || this.next === undefined) return;
    this.loadingOlder = true;
    try {
      while (this.#underway) await this.#underway;
      this.error = undefined; // also that of what it has waited for: with one there no further page is fetched
      const [before, held] = [this.next, this.#held];
      if (before === undefined) return;
      const page = await this.#client.entries(this.id, before, pageSize);
      // Other entries have taken the place of those that it stands before, or it is of before a gap.
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

  /** Fetches the page after the last entry held, where that is not the last of all. */
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
      // It is kept as the error, beside which there is a way to try again.
    } finally {
      this.loadingNewer = false;
    }
  }

  apply(events: readonly Event[]): void {
    // A page that is under way may be older than these: they are applied after it, so that it undoes none of them, and adds none whose text
    // they go on with.
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

  /** Fetches an entry again of whose text something was missed, such as what a program wrote long ago began with: it may be far from the end. */
  #heal(seq: number): Promise<void> {
    return this.#take(() => this.#client.entriesAround(this.id, seq, firstPage), 'refresh');
  }

  find(toolCallId: string): Item | undefined {
    return this.items.findLast((item) => item.entry.tool?.toolCallId === toolCallId);
  }
}
