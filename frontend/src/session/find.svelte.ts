import type { Client } from '../api/client';
import { asApiError, type ApiError } from '../api/errors';
import { marking, rangesIn } from './highlight';
import { termsOf, type Term } from './words';

/** Milliseconds from the last keystroke to the search, as in the search over all sessions. */
const typedFor = 120;
/** Milliseconds until the search is repeated while the server still indexes entries. */
const askAgainAfter = 1_500;

/** The last query, in any session. */
let last = '';

/** A search within a session, and the current match. */
export class Find {
  query = $state(last);
  /** The sequence numbers of all entries that match, in transcript order. */
  places = $state.raw<readonly number[]>([]);
  /** The sequence number of the current match. */
  at = $state.raw<number | undefined>();
  /** The number of entries that are not indexed yet. */
  pending = $state(0);
  busy = $state(false);
  /** An answer has come, even if it is empty. */
  answered = $state(false);
  error = $state.raw<ApiError | undefined>();

  readonly terms: readonly Term[] = $derived(termsOf(this.query.trim()));
  readonly found: ReadonlySet<number> = $derived(new Set(this.places));
  /** The number of the current match, from 1. */
  readonly nth = $derived(this.at === undefined ? 0 : this.places.indexOf(this.at) + 1);

  /** The functions that mark matches belong to this file, because the page starts without it. */
  readonly marking = marking;
  readonly rangesIn = rangesIn;

  #client: Pick<Client, 'find'>;
  #session: string;
  #go: (seq: number) => void;
  /** The first entry in view when the search began; the first match from there on is shown. Undefined stands for the end. */
  #from: number | undefined;
  /** The query had no indexed match yet. The first match is shown when it comes. */
  #waits = false;
  #asking: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    client: Pick<Client, 'find'>,
    session: string,
    from: number | undefined,
    go: (seq: number) => void,
  ) {
    this.#client = client;
    this.#session = session;
    this.#from = from;
    this.#go = go;
    if (this.query.trim()) void this.#ask(true);
  }

  /** Called when the query has changed. */
  changed(): void {
    this.#stop();
    last = this.query;
    if (!this.query.trim()) {
      this.#nothing();
      return;
    }
    this.busy = true;
    this.#timer = setTimeout(() => void this.#ask(true), typedFor);
  }

  /** Goes to the next or previous match, and wraps around at the ends. */
  step(by: 1 | -1): void {
    if (this.busy) {
      this.#stop();
      void this.#ask(true); // the current matches belong to the previous query
      return;
    }
    const count = this.places.length;
    if (count === 0) return;
    const here = this.nth - 1;
    const next = here < 0 ? nearest(this.places, this.#from) : (here + by + count) % count;
    this.#show(this.places[next]);
  }

  /** Called when entries have been added: searches again. The view stays where it is. */
  more(): void {
    if (!this.answered || this.busy) return;
    this.#timer ??= setTimeout(() => void this.#ask(false), askAgainAfter);
  }

  close(): void {
    this.#stop();
  }

  #show(seq: number | undefined): void {
    this.at = seq;
    if (seq === undefined) return;
    this.#from = seq;
    this.#go(seq);
  }

  #nothing(): void {
    this.#waits = false;
    this.places = [];
    this.at = this.error = undefined;
    this.pending = 0;
    this.answered = false;
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#asking?.abort();
    this.#asking = undefined;
    this.busy = false;
  }

  async #ask(anew: boolean): Promise<void> {
    this.#stop();
    const asking = new AbortController();
    this.#asking = asking;
    this.busy = anew;
    try {
      const page = await this.#client.find(
        { q: this.query.trim(), session: this.#session, limit: 1 },
        asking.signal,
      );
      if (this.#asking !== asking) return;
      this.pending = page.pending ?? 0;
      this.#take(page.places ?? [], anew);
      this.error = undefined;
    } catch (thrown) {
      if (this.#asking !== asking) return;
      if (anew) this.#nothing();
      this.error = asApiError(thrown);
    }
    this.#asking = undefined;
    this.busy = false;
    if (this.pending > 0) this.#timer = setTimeout(() => void this.#ask(false), askAgainAfter);
  }

  #take(places: readonly number[], anew: boolean): void {
    this.places = places;
    this.answered = true;
    const first = anew || this.#waits;
    this.#waits = first && places.length === 0 && this.pending > 0;
    if (first) this.#show(places[nearest(places, this.#from)]);
    else if (this.at !== undefined && !places.includes(this.at)) this.at = undefined; // the entry does not match any more
  }
}

/** Returns the first match from a place on, otherwise the last. */
export function nearest(places: readonly number[], from: number | undefined): number {
  const at = from === undefined ? -1 : places.findIndex((seq) => seq >= from);
  return at >= 0 ? at : places.length - 1;
}
