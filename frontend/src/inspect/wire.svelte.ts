import type { Client } from '../api/client';
import { asApiError } from '../api/errors';
import { backOff } from '../api/limit';
import { frames, type Filter, type Frame, type FramePage } from './calls';

// What goes over a session's wire, followed from its end and read backwards as far as a person scrolls.

const pageSize = 500;
/** What is kept while the end is followed: what came before is read again by scrolling there. */
export const mostKept = 50_000;
/** Between two answers: an agent that streams writes a hundred times a second, and nobody reads so fast. */
const pace = 250;
/** Between two tries while the server does not answer. */
const longestPause = 5_000;
/** Fewer than so many found by a filter are no page: it goes on looking. */
const enough = 100;

export const everything: Filter = { text: '', method: '', dir: '', notes: false };

export class Wire {
  /** In the order of the wire. */
  items = $state.raw<readonly Frame[]>([]);
  /** How many more rows stand before the first than at the beginning: who scrolls moves by as many. */
  shift = $state(0);
  loaded = $state(false);
  loading = $state(false);
  /** Where a filter looks at the moment. */
  lookedBackTo = $state<number>();
  paused = $state(false);
  error = $state.raw<unknown>();
  /** What to pass as before for what is older. */
  older = $state.raw<number>();

  readonly #client: Client;
  readonly #session: string;
  readonly #filter: Filter;
  readonly #end = new AbortController();
  #after = 0;
  #wake: (() => void) | undefined;
  /** The end is being opened or followed: twice at once would show everything twice. */
  #runs = false;
  /** How many calls of the one that follows the end failed in a row. */
  #failures = 0;
  /** What is older was asked for, and did not come. */
  #olderFailed = false;

  constructor(client: Client, session: string, filter: Filter) {
    this.#client = client;
    this.#session = session;
    this.#filter = filter;
  }

  /** Reads the end, and then what comes, until close. What fails is tried again by itself, unless the answer would be the same. */
  async open(): Promise<void> {
    if (this.#runs) return;
    this.#runs = true;
    while (!this.#end.signal.aborted) {
      try {
        await (this.loaded ? this.#next() : this.#begin());
      } catch (thrown) {
        this.#fail(thrown);
        const { status } = asApiError(thrown);
        if (this.#end.signal.aborted || (status >= 400 && status < 500)) break;
        await this.#rest(backOff(this.#failures++, longestPause));
      }
    }
    this.#runs = false;
  }

  close(): void {
    this.#end.abort();
    this.#wake?.();
  }

  pause(paused: boolean): void {
    this.paused = paused;
    this.#wake?.();
  }

  /** The page may be seen again. */
  wake(): void {
    this.#wake?.();
  }

  again(): void {
    this.error = undefined;
    this.#wake?.(); // it may wait for its next try
    void this.open();
    if (this.loaded && this.#olderFailed) void this.loadOlder();
  }

  async #begin(): Promise<void> {
    // Where the journal ends now, whatever the filter leaves out: what comes later is what follows.
    const newest = await this.#ask({ limit: 1 }, { ...everything, notes: true });
    this.#after = newest.items[0]?.seq ?? 0;
    this.older = this.#after + 1;
    this.items = []; // of an attempt that did not get to its end
    await this.loadOlder();
    this.loaded = true;
    this.#answered();
  }

  /** Reads what stands before the first row. A filter may have to look far for it. */
  async loadOlder(): Promise<void> {
    if (this.loading || this.older === undefined) return;
    this.loading = true;
    this.#olderFailed = false;
    try {
      for (let found = 0; found < enough && this.older !== undefined;) {
        const page: FramePage = await this.#ask({ before: this.older, limit: pageSize }, this.#filter);
        if (page.items.length > 0) {
          this.items = [...page.items.reverse(), ...this.items];
          this.shift += page.items.length;
          found += page.items.length;
        }
        this.older = page.next;
        this.lookedBackTo = page.next;
      }
    } catch (thrown) {
      if (!this.loaded) throw thrown;
      this.#olderFailed = true;
      this.#fail(thrown);
    } finally {
      this.loading = false;
      this.lookedBackTo = undefined;
    }
  }

  async #next(): Promise<void> {
    if (this.paused || document.visibilityState === 'hidden') {
      await new Promise<void>((done) => (this.#wake = done));
      return;
    }
    const page = await this.#ask({ after: this.#after, limit: pageSize, wait: 20 }, this.#filter);
    this.#answered();
    if (this.paused) return; // it is asked for again
    this.#after = page.next ?? this.#after;
    this.#add(page.items);
    if (!page.more) await this.#rest(pace);
  }

  /** Where it had failed before, the server answers again: what else was asked for meanwhile is so once more. */
  #answered(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.error = undefined;
    if (this.#olderFailed) void this.loadOlder();
  }

  #add(fresh: readonly Frame[]): void {
    if (fresh.length === 0) return;
    const all = [...this.items, ...fresh];
    // Twice as much is held before half of it goes: what is cut off each time would be copied each time.
    const over = all.length > 2 * mostKept ? all.length - mostKept : 0;
    this.items = over > 0 ? all.slice(over) : all;
    if (over > 0) {
      this.shift -= over;
      this.older = this.items[0]?.seq;
    }
  }

  #rest(ms: number): Promise<void> {
    return new Promise((done) => {
      const timer = setTimeout(done, ms);
      this.#wake = () => {
        clearTimeout(timer);
        done();
      };
    });
  }

  #ask(wanted: Parameters<typeof frames>[2], filter: Filter): Promise<FramePage> {
    return frames(this.#client, this.#session, wanted, filter, this.#end.signal);
  }

  #fail(thrown: unknown): void {
    if (!this.#end.signal.aborted) this.error = thrown;
  }
}

/** Which rows of a list are drawn: those in sight, and some around them. */
export function inSight(
  count: number,
  row: number,
  top: number,
  height: number,
  around = 12,
): { from: number; to: number } {
  const first = Math.floor(Math.max(0, top) / row);
  const from = Math.max(0, Math.min(first - around, count - 1));
  return { from, to: Math.min(count, first + Math.ceil(height / row) + around) };
}
