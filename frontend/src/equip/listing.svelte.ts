import { SvelteMap } from 'svelte/reactivity';
import type { Equipment } from '../api/records';
import { asApiError } from '../api/errors';

// The entries of one kind in a directory. Other programs write the same file without an event, so the list is fetched again while a person
// looks at it.

const often = 4_000;

interface Named {
  name: string;
}

type Ask<T> = (directory: string, signal: AbortSignal) => Promise<Equipment<T>>;

export class Listing<T extends Named> {
  directory = $state('');
  path = $state('');
  problem = $state('');
  loaded = $state(false);
  /** The error of the last fetch. */
  fault = $state.raw<ReturnType<typeof asApiError> | undefined>();
  #all = $state.raw<readonly T[]>([]);
  #ask: Ask<T>;
  #removals: Removals;
  #asking: AbortController | undefined;

  constructor(ask: Ask<T>, removals: Removals) {
    this.#ask = ask;
    this.#removals = removals;
  }

  readonly items = $derived.by(() =>
    this.#all.filter(({ name }) => !this.#removals.has(this.directory, name)),
  );

  async open(directory: string): Promise<void> {
    this.directory = directory;
    this.#all = [];
    this.path = this.problem = '';
    this.loaded = false;
    await this.load();
  }

  async load(): Promise<void> {
    this.#asking?.abort();
    const ours = new AbortController();
    this.#asking = ours;
    if (this.directory === '') return;
    try {
      const found = await this.#ask(this.directory, ours.signal);
      if (ours.signal.aborted) return;
      this.#all = found.items;
      this.path = found.path;
      this.problem = found.problem ?? '';
      this.fault = undefined;
    } catch (thrown) {
      if (ours.signal.aborted) return;
      this.fault = asApiError(thrown);
    }
    this.loaded = true;
  }

  /** Shows an entry as the server answered it. A fetch that began before may not know the entry, so the list is fetched anew. */
  put(item: T): void {
    void this.load();
    const at = this.#all.findIndex(({ name }) => name === item.name);
    this.#all = at < 0 ? [...this.#all, item] : this.#all.with(at, item);
  }

  /** Refreshes the list regularly. The returned function ends that. */
  follow(): () => void {
    const look = () => {
      if (document.visibilityState === 'visible') void this.load();
    };
    const timer = setInterval(look, often);
    document.addEventListener('visibilitychange', look);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', look);
      this.#asking?.abort();
    };
  }
}

/** Milliseconds in which a removal can be undone. */
const undoFor = 5_000;

interface Waiting {
  timer: ReturnType<typeof setTimeout>;
  remove: (last: boolean) => Promise<void>;
}

/**
 * Removals that can still be undone. The server is asked only afterwards, because no answer of the server contains an entry's secrets, so a
 * removed entry could not be restored.
 */
export class Removals {
  #waiting = new SvelteMap<string, Waiting>();

  constructor() {
    // When the page closes, waiting removals are carried out.
    window.addEventListener('pagehide', () => this.#all(true));
  }

  has(directory: string, name: string): boolean {
    return this.#waiting.has(keyOf(directory, name));
  }

  /** Calls remove after undoFor milliseconds. Its argument says whether the page is ending. */
  add(directory: string, name: string, remove: (last: boolean) => Promise<void>): void {
    const key = keyOf(directory, name);
    this.undo(directory, name);
    const timer = setTimeout(() => void this.#run(key, false), undoFor);
    this.#waiting.set(key, { timer, remove });
  }

  undo(directory: string, name: string): void {
    const key = keyOf(directory, name);
    clearTimeout(this.#waiting.get(key)?.timer);
    this.#waiting.delete(key);
  }

  async #run(key: string, last: boolean): Promise<void> {
    const waiting = this.#waiting.get(key);
    if (!waiting) return;
    clearTimeout(waiting.timer);
    try {
      await waiting.remove(last);
    } finally {
      // A later removal of the same name may wait by now.
      if (this.#waiting.get(key) === waiting) this.#waiting.delete(key);
    }
  }

  #all(last: boolean): void {
    for (const key of [...this.#waiting.keys()]) void this.#run(key, last);
  }
}

function keyOf(directory: string, name: string): string {
  return JSON.stringify([directory, name]);
}
