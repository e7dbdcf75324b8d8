import { SvelteMap } from 'svelte/reactivity';
import type { Client } from '../api/client';
import type { Comparison } from '../api/records';

/** The prompts that several agents were given, with the sessions of their members. */
export class Comparisons {
  readonly byId = new SvelteMap<string, Comparison>();
  /** Each comparison by the sessions of its members. */
  readonly #of = $derived.by(
    () => new Map([...this.byId.values()].flatMap((one) => one.members.map(({ session }) => [session, one]))),
  );
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Reads the list anew; when that fails the list stays as it is. */
  async load(signal: AbortSignal): Promise<void> {
    const list = await this.#client.call('GET /client/comparisons', { signal }).catch(() => undefined);
    if (!list?.items) return;
    this.byId.clear();
    for (const one of list.items) this.put(one);
  }

  put(comparison: Comparison): void {
    this.byId.set(comparison.id, comparison);
  }

  /** Returns the comparison of which a session is a member. */
  of(session: string): Comparison | undefined {
    return this.#of.get(session);
  }
}
