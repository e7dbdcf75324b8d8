import { SvelteMap } from 'svelte/reactivity';
import type { Client } from '../api/client';
import { asApiError, type ApiError } from '../api/errors';
import type { Entry, Event, Request, Turn } from '../api/records';
import { applyEvents, applyPage, forget, plainItem, type Item, type Transcript } from './transcript';

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
/** How many entries are kept while the tail is followed. */
const kept = 1_000;

/** One conversation that is shown, or was a moment ago. */
export class SessionView implements Transcript {
  readonly id: string;
  items = $state.raw<readonly Item[]>([]);
  readonly turns = new SvelteMap<string, Turn>();
  next = $state.raw<number | undefined>();
  loaded = $state(false);
  loading = $state(false);
  loadingOlder = $state(false);
  error = $state.raw<ApiError | undefined>();
  /** Counts entries that came at the end, for the pill that says how many are new. */
  arrived = $state.raw(0);
  /** The person reads further up: nothing above may be dropped. */
  reading = false;

  #client: Client;
  #held: Event[] = [];
  #requests: (requests: readonly Request[]) => void;

  constructor(id: string, client: Client, requests: (requests: readonly Request[]) => void) {
    this.id = id;
    this.#client = client;
    this.#requests = requests;
  }

  /** Fetches the tail; also what heals a gap. */
  async load(signal?: AbortSignal): Promise<void> {
    if (this.loading) return;
    this.loading = true;
    this.error = undefined;
    try {
      const page = await this.#client.entries(this.id, undefined, pageSize, signal);
      this.#requests(page.requests);
      applyPage(this, page, 'tail', live);
    } catch (thrown) {
      this.error = asApiError(thrown);
      throw thrown;
    } finally {
      this.loading = false;
      this.apply(this.#held.splice(0));
    }
  }

  /** Fetches the page before the first entry held. */
  async loadOlder(): Promise<void> {
    if (this.loadingOlder || this.next === undefined) return;
    this.loadingOlder = true;
    try {
      const page = await this.#client.entries(this.id, this.next, pageSize);
      this.#requests(page.requests);
      applyPage(this, page, 'older', live);
    } catch (thrown) {
      this.error = asApiError(thrown);
    } finally {
      this.loadingOlder = false;
    }
  }

  apply(events: readonly Event[]): void {
    // A page that is under way may be older than these: they are applied after it, so that it undoes none of them.
    if (this.loading) {
      this.#held.push(...events);
      return;
    }
    const change = applyEvents(this, events, live);
    this.arrived += change.added;
    if (!this.reading) forget(this, kept);
    if (change.gap) void this.load().catch(() => undefined);
  }

  find(toolCallId: string): Item | undefined {
    return this.items.findLast((item) => item.entry.tool?.toolCallId === toolCallId);
  }
}
