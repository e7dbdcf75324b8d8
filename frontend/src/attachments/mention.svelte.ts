import type { Client } from '../api/client';
import type { FoundPath } from '../api/records';

/** Milliseconds without a keystroke before the search begins. */
const pause = 60;

/** Where a search looks: in the directory of a session, or in one where a session is to begin. */
export type Within = { session: string } | { cwd: string };

/** Searches the files that match the text after an @. */
export class PathSearch {
  items = $state.raw<readonly FoundPath[]>([]);
  more = $state(false);
  looking = $state(true);
  #client: Pick<Client, 'call'>;
  #within: Within;
  #typed: string | undefined;
  #cancel: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #found: (() => void)[] = [];

  constructor(client: Pick<Client, 'call'>, within: Within) {
    this.#client = client;
    this.#within = within;
  }

  /** Starts a search unless the same text was searched last. The earlier results stay until the new ones arrive. */
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
      const at = this.#within;
      const query = { limit: 20, q: typed };
      const found = await ('session' in at
        ? this.#client.call('GET /client/sessions/{id}/paths', { path: { id: at.session }, query, signal })
        : this.#client.call('GET /client/paths', { query: { ...query, cwd: at.cwd }, signal }));
      if (signal.aborted) return;
      this.items = found.items;
      this.more = found.more;
    } catch {
      if (signal.aborted) return;
      // The directory may be gone, or the agent's runtime away: the list is empty.
      this.items = [];
      this.more = false;
    }
    this.looking = false;
    for (const done of this.#found.splice(0)) done();
  }

  /** Resolves when items are the results of the text that was searched last. */
  async found(): Promise<void> {
    if (this.looking) await new Promise<void>((done) => this.#found.push(done));
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#cancel?.abort();
    this.#typed = undefined;
    this.#found = []; // the search was closed, so nobody waits for a result
  }
}
