import type { Client } from '../api/client';
import { asApiError, type ApiError } from '../api/errors';
import { marking, rangesIn } from './highlight';
import { termsOf, type Term } from './words';

/** After the last key, as in the search over all conversations. */
const typedFor = 120;
/** How long the server may take to make what was said findable before it is asked again. */
const askAgainAfter = 1_500;

/** What was looked for last, in whichever conversation. */
let last = '';

/** What is looked for in one conversation, and where it is. */
export class Find {
  query = $state(last);
  /** The seqs of all entries that have it, in the conversation's order. */
  places = $state.raw<readonly number[]>([]);
  /** Which of them is shown. */
  at = $state.raw<number | undefined>();
  /** How many entries cannot be found yet. */
  pending = $state(0);
  busy = $state(false);
  /** There is an answer, even if nothing was found. */
  answered = $state(false);
  error = $state.raw<ApiError | undefined>();

  readonly terms: readonly Term[] = $derived(termsOf(this.query.trim()));
  readonly found: ReadonlySet<number> = $derived(new Set(this.places));
  /** Its number, from 1. */
  readonly nth = $derived(this.at === undefined ? 0 : this.places.indexOf(this.at) + 1);

  /** What shows it in the page comes with it: nobody looks for anything as the page starts. */
  readonly marking = marking;
  readonly rangesIn = rangesIn;

  #client: Pick<Client, 'find'>;
  #session: string;
  #go: (seq: number) => void;
  /** Where the person looked when they began: the first place from there on is shown. The end where it is undefined. */
  #from: number | undefined;
  /** What is looked for was not searchable when it was asked for: its first place is shown as soon as there is one. */
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

  /** Another query was typed. */
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

  /** To the next place or the one before, round about at the ends. */
  step(by: 1 | -1): void {
    if (this.busy) {
      this.#stop();
      void this.#ask(true); // what is shown answers what was typed before
      return;
    }
    const count = this.places.length;
    if (count === 0) return;
    const here = this.nth - 1;
    const next = here < 0 ? nearest(this.places, this.#from) : (here + by + count) % count;
    this.#show(this.places[next]);
  }

  /** Something was said: it may have more of it. The view stays where it is. */
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
    else if (this.at !== undefined && !places.includes(this.at)) this.at = undefined; // it says something else by now
  }
}

/** The first place from there on, else the last one. */
export function nearest(places: readonly number[], from: number | undefined): number {
  const at = from === undefined ? -1 : places.findIndex((seq) => seq >= from);
  return at >= 0 ? at : places.length - 1;
}
