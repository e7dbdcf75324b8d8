import type { Client } from '../api/client';
import type { Event, QueueItem } from '../api/records';
import { applyQueue } from './queue';

/** The queue of one conversation. */
export class QueueView {
  readonly id: string;
  items = $state.raw<readonly QueueItem[]>([]);
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
    const items = await this.#client.queue(this.id, signal);
    if (this.#meanwhile !== ours) return; // a newer list is under way
    this.#meanwhile = undefined;
    this.items = applyQueue(items, ours);
  }

  apply(events: readonly Event[]): void {
    this.#meanwhile?.push(...events);
    this.items = applyQueue(this.items, events);
  }
}
