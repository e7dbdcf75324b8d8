import type { ApiError } from './errors';
import { asApiError } from './errors';
import { backOff, limited } from './limit';
import type { EventBatch } from './records';

// The feed: a long poll, repeated. The pure function decide chooses the next step after each answer; Feed carries the step out.

/** The reader's position in the feed. It is undefined before the first answer and after a gap. */
export interface Place {
  gen: string;
  seq: number;
}

export interface FeedState {
  place: Place | undefined;
  /** Failed calls in a row. */
  failures: number;
}

type Outcome =
  | { kind: 'batch'; batch: EventBatch }
  | { kind: 'loaded'; place: Place }
  | { kind: 'silent' } // no answer for 40 s
  | { kind: 'failed'; status: number };

export type Step =
  | { do: 'ask' } // make the next call
  | { do: 'apply'; batch: EventBatch } // then make the next call
  | { do: 'load'; place: Place } // fetch all snapshots, then follow from place
  | { do: 'pause'; ms: number } // wait, then make the next call
  | { do: 'stop' }; // not signed in: a retry would fail too

const holdSeconds = 25;
const longestPause = 10_000;

/**
 * The least time in milliseconds between two calls while a stream runs. The page draws no more often (Markdown is parsed every 50 ms), and
 * each call costs the page, the engine's network process and the server: sixty calls a second took a sixth of the page's script time. The
 * first few answers in a row are followed by a call at once.
 */
export const pace = 50;
const fewInARow = 4;

export const start: FeedState = { place: undefined, failures: 0 };

export function decide(state: FeedState, outcome: Outcome): [FeedState, Step] {
  switch (outcome.kind) {
    case 'loaded':
      return [{ place: outcome.place, failures: 0 }, { do: 'ask' }];
    case 'batch': {
      const { gen, seq, reset } = outcome.batch;
      if (reset || state.place?.gen !== gen) {
        // The stored position belongs to another start of the server or lies before a gap: everything is read again.
        return [
          { place: undefined, failures: 0 },
          { do: 'load', place: { gen, seq } },
        ];
      }
      const events = (outcome.batch.events ?? []).filter((event) => event.seq > (state.place?.seq ?? 0));
      const next = { place: { gen, seq: Math.max(seq, state.place.seq) }, failures: 0 };
      return events.length > 0
        ? [next, { do: 'apply', batch: { ...outcome.batch, events } }]
        : [next, { do: 'ask' }];
    }
    case 'failed':
      if (outcome.status === 401 || outcome.status === 403)
        return [{ ...state, failures: 0 }, { do: 'stop' }];
      return retry(state);
    case 'silent':
      return retry(state);
  }
}

function retry(state: FeedState): [FeedState, Step] {
  return [
    { ...state, failures: state.failures + 1 },
    { do: 'pause', ms: backOff(state.failures, longestPause) },
  ];
}

/** The owner of a feed: its calls to the server, and the receiver of its events. */
export interface FeedHost {
  ask(place: Place | undefined, wait: number, signal: AbortSignal): Promise<EventBatch>;
  /** Fetches every snapshot. The feed retries a failed load like a failed call. */
  load(signal: AbortSignal): Promise<void>;
  apply(batch: EventBatch): void;
  link(link: 'live' | 'reconnecting' | 'signed_out', error?: ApiError): void;
}

export class Feed {
  #host: FeedHost;
  #ended = new AbortController();
  #wake: (() => void) | undefined;

  constructor(host: FeedHost) {
    this.#host = host;
  }

  /** Runs the feed until close. */
  async run(): Promise<void> {
    let state = start;
    let step: Step = { do: 'ask' };
    let asked = 0;
    let soon = 0; // answers in a row that came within the pace
    while (!this.#ended.signal.aborted) {
      let outcome: Outcome;
      switch (step.do) {
        case 'stop':
          return;
        case 'pause':
          await this.#pause(step.ms);
          step = { do: 'ask' };
          continue;
        case 'apply': {
          this.#host.apply(step.batch);
          const rest = asked + pace - performance.now();
          soon = rest > 0 ? soon + 1 : 0;
          // Engines let the timers of a hidden page fire once a second at most, so a hidden page does not pause.
          if (soon >= fewInARow && !step.batch.more && document.visibilityState !== 'hidden')
            await this.#pause(rest);
          step = { do: 'ask' };
          continue;
        }
        case 'load':
          outcome = await this.#load(step.place);
          break;
        case 'ask':
          asked = performance.now();
          outcome = await this.#ask(state.place);
          break;
      }
      if (this.#ended.signal.aborted) return;
      [state, step] = decide(state, outcome);
    }
  }

  /** Ends a pause at once: the machine woke up, or the network is back. */
  wake(): void {
    this.#wake?.();
  }

  close(): void {
    this.#ended.abort();
    this.#wake?.();
  }

  async #ask(place: Place | undefined): Promise<Outcome> {
    try {
      const batch = await limited((signal) => this.#host.ask(place, holdSeconds, signal), this.#ended.signal);
      if (place && place.gen === batch.gen && !batch.reset) this.#host.link('live');
      return { kind: 'batch', batch };
    } catch (thrown) {
      return this.#failure(thrown);
    }
  }

  async #load(place: Place): Promise<Outcome> {
    try {
      await limited((signal) => this.#host.load(signal), this.#ended.signal);
      this.#host.link('live');
      return { kind: 'loaded', place };
    } catch (thrown) {
      return this.#failure(thrown);
    }
  }

  #failure(thrown: unknown): Outcome {
    if (this.#ended.signal.aborted) return { kind: 'silent' };
    if (thrown instanceof DOMException) {
      this.#host.link('reconnecting');
      return { kind: 'silent' };
    }
    const error = asApiError(thrown);
    this.#host.link(error.status === 401 || error.status === 403 ? 'signed_out' : 'reconnecting', error);
    return { kind: 'failed', status: error.status };
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }
}
