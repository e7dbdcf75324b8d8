import type { Client } from '../api/client';
import { findPaths } from './calls';
import type { FoundPath } from '../api/records';

/** So long it waits for the next letter before it looks. */
const pause = 60;

/** The files below a conversation's directory that fit what is typed after an @. */
export class PathSearch {
  items = $state.raw<readonly FoundPath[]>([]);
  more = $state(false);
  looking = $state(true);
  #client: Pick<Client, 'json'>;
  #session: string;
  #typed: string | undefined;
  #cancel: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #found: (() => void)[] = [];

  constructor(client: Pick<Client, 'json'>, session: string) {
    this.#client = client;
    this.#session = session;
  }

  /** Looks for it, unless that is what was looked for last. What was found before stays until then. */
  look(typed: string): void {
    if (typed === this.#typed) return;
    clearTimeout(this.#timer);
    this.#cancel?.abort();
    this.#typed = typed;
    this.looking = true;
    const cancel = new AbortController();
    this.#cancel = cancel;
    this.#timer = setTimeout(() => void this.#ask(typed, cancel.signal), pause);
  }

  async #ask(typed: string, signal: AbortSignal): Promise<void> {
    try {
      const found = await findPaths(this.#client as Client, this.#session, typed, signal);
      if (signal.aborted) return;
      this.items = found.items;
      this.more = found.more;
    } catch {
      if (signal.aborted) return;
      // The directory may be gone, or the agent elsewhere: there is nothing to choose from.
      this.items = [];
      this.more = false;
    }
    this.looking = false;
    for (const done of this.#found.splice(0)) done();
  }

  /** What is found is what was looked for last, and not what was found before. */
  async found(): Promise<void> {
    if (this.looking) await new Promise<void>((done) => this.#found.push(done));
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#cancel?.abort();
    this.#typed = undefined;
    this.#found = []; // nobody wants it any more
  }
}
