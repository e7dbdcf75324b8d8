import { SvelteMap } from 'svelte/reactivity';
import type { Client } from '../api/client';
import type { Event, QueueItem } from '../api/records';
import type { Edit } from './edit.svelte';
import { applyQueue } from './queue';

/** The queue of one conversation. */
export class QueueView {
  readonly id: string;
  items = $state.raw<readonly QueueItem[]>([]);
  /** What is not among the items is not in the queue. */
  loaded = $state(false);
  #client: Pick<Client, 'queue'>;
  /** What came while the list was under way. */
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
      if (this.#meanwhile !== ours) return; // a newer list is under way
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

/** What is being changed in the queue of a conversation, by row: it outlives the view of it. */
export function editsOf(session: string): SvelteMap<string, Edit> {
  let found = edits.get(session);
  if (!found) edits.set(session, (found = new SvelteMap()));
  return found;
}
