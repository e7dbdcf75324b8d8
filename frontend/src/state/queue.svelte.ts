import { SvelteMap } from 'svelte/reactivity';
import type { Client } from '../api/client';
import type { Event, QueueItem } from '../api/records';
import type { Edit } from './edit.svelte';
import { applyQueue } from './queue';

/** The queue of a session. */
export class QueueView {
  readonly id: string;
  items = $state.raw<readonly QueueItem[]>([]);
  /** The list has been fetched. Only then a prompt that is not in items is not in the queue. */
  loaded = $state(false);
  #client: Pick<Client, 'queue'>;
  /** Events that arrived while the list was being fetched. */
  #meanwhile: Event[] | undefined;

  constructor(id: string, client: Pick<Client, 'queue'>) {
    this.id = id;
    this.#client = client;
  }

  async load(signal?: AbortSignal): Promise<void> {
    const ours: Event[] = [];
    this.#meanwhile = ours;
    let items;
    try {
      items = await this.#client.queue(this.id, signal);
      if (this.#meanwhile !== ours) return; // a newer fetch is under way
    } finally {
      if (this.#meanwhile === ours) this.#meanwhile = undefined;
    }
    this.items = applyQueue(items, ours);
    this.loaded = true;
  }

  apply(events: readonly Event[]): void {
    this.#meanwhile?.push(...events);
    this.items = applyQueue(this.items, events);
  }
}

const edits = new Map<string, SvelteMap<string, Edit>>();

/** Returns the edits in a session's queue, by row. The edits outlive the view. */
export function editsOf(session: string): SvelteMap<string, Edit> {
  let found = edits.get(session);
  if (!found) edits.set(session, (found = new SvelteMap()));
  return found;
}
