import type { Client } from '../api/client';
import type { Call } from '../api/route';
import { asApiError } from '../api/errors';
import { backOff } from '../api/limit';
import type { Frame, FramePage } from '../api/records';

// The frames of a session's wire. Wire follows the end, and reads older frames as far as a person scrolls.

const pageSize = 500;
/** The number of frames kept while the end is followed. Earlier frames are read again when a person scrolls there. */
const mostKept = 50_000;
/** Milliseconds between two calls. A streaming agent writes a hundred frames a second, faster than anybody reads. */
const pace = 250;
/** The longest pause between two tries while the server does not answer. */
const longestPause = 5_000;
/** The least number of frames in a page. With fewer the search goes on. */
const enough = 100;

export interface Filter {
  text: string;
  method: string;
  dir: '' | 'in' | 'out';
  notes: boolean;
}

/** The frames of a page. wait is the number of seconds that the server may hold the call until new frames come. */
type Wanted = Pick<
  NonNullable<Call<'GET /client/sessions/{id}/frames'>['query']>,
  'after' | 'before' | 'limit' | 'wait'
>;

export const everything: Filter = { text: '', method: '', dir: '', notes: false };

export class Wire {
  /** In the order of the wire. */
  items = $state.raw<readonly Frame[]>([]);
  /** The number of rows added before the first row since the start. A list that scrolls moves by as many rows. */
  shift = $state(0);
  loaded = $state(false);
  loading = $state(false);
  /** The sequence number that a filtered search has reached. */
  lookedBackTo = $state<number>();
  paused = $state(false);
  error = $state.raw<unknown>();
  /** The value of before for the next older page. */
  older = $state.raw<number>();

  readonly #client: Client;
  readonly #session: string;
  readonly #filter: Filter;
  readonly #end = new AbortController();
  #after = 0;
  #wake: (() => void) | undefined;
  /** open is running. A second run would show every frame twice. */
  #runs = false;
  /** Failed calls of open in a row. */
  #failures = 0;
  /** The last call of loadOlder failed. */
  #olderFailed = false;

  constructor(client: Client, session: string, filter: Filter) {
    this.#client = client;
    this.#session = session;
    this.#filter = filter;
  }

  /** Reads the end and follows it until close. Failed calls are repeated, but not refused calls. */
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

  /** Continues after the page became visible. */
  wake(): void {
    this.#wake?.();
  }

  again(): void {
    this.error = undefined;
    this.#wake?.(); // ends the pause before the next try
    void this.open();
    if (this.loaded && this.#olderFailed) void this.loadOlder();
  }

  async #begin(): Promise<void> {
    // The end of the journal without a filter. New frames come after this number.
    const newest = await this.#ask({ limit: 1 }, { ...everything, notes: true });
    this.#after = newest.items[0]?.seq ?? 0;
    this.older = this.#after + 1;
    this.items = []; // drops the rows of a failed attempt
    await this.loadOlder();
    this.loaded = true;
    this.#answered();
  }

  /** Reads the page before the first row. With a filter that may take several calls. */
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
    if (this.paused) return; // the same page is fetched again later
    this.#after = page.next ?? this.#after;
    this.#add(page.items);
    if (!page.more) await this.#rest(pace);
  }

  /** After a failure a successful call shows that the server answers again, so the older page is fetched again too. */
  #answered(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.error = undefined;
    if (this.#olderFailed) void this.loadOlder();
  }

  #add(fresh: readonly Frame[]): void {
    if (fresh.length === 0) return;
    const all = [...this.items, ...fresh];
    // The list is cut only at twice the limit, since each cut copies the list.
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

  #ask(wanted: Wanted, { text, method, dir, notes }: Filter): Promise<FramePage> {
    const query = {
      ...wanted,
      bodies: false,
      q: text,
      method,
      dir: dir || undefined,
      notes: notes || undefined,
    };
    return this.#client.call('GET /client/sessions/{id}/frames', {
      path: { id: this.#session },
      query,
      end: this.#end.signal,
    });
  }

  #fail(thrown: unknown): void {
    if (!this.#end.signal.aborted) this.error = thrown;
  }
}

/** Returns the range of rows to draw: the visible rows and some around them. */
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
