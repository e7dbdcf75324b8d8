import type { Client } from '../api/client';
import { isRefused } from '../api/errors';
import { backOff } from '../api/limit';
import type { Event } from '../api/records';
import { QueueView } from './queue.svelte';
import { SessionView } from './session.svelte';
import type { Conversations } from './conversations.svelte';
import type { Inbox } from './inbox.svelte';
import type { Toasts } from './toasts.svelte';

/** How many conversations are kept up to date, those that panes show among them. */
const mostOpen = 6;

/** The transcripts and queues of the conversations that are open: shown, or shown a moment ago. Events keep them up to date. */
export class Transcripts {
  readonly #views = new Map<string, SessionView>();
  readonly #queues = new Map<string, QueueView>();
  /** The open conversations, the last used at the end. */
  #order: string[] = [];
  readonly #client: Client;
  readonly #toasts: Toasts;
  readonly #inbox: Inbox;
  readonly #conversations: Conversations;
  readonly #shows: (id: string) => boolean;

  /** The function shows says whether a pane shows a conversation. */
  constructor(
    client: Client,
    toasts: Toasts,
    inbox: Inbox,
    conversations: Conversations,
    shows: (id: string) => boolean,
  ) {
    this.#client = client;
    this.#toasts = toasts;
    this.#inbox = inbox;
    this.#conversations = conversations;
    this.#shows = shows;
  }

  /** Whether the transcript of a conversation is open. */
  has(id: string): boolean {
    return this.#views.has(id);
  }

  /** The transcript of a conversation. The first call opens it at its tail, or around an entry. */
  view(id: string, around?: number): SessionView {
    this.#order = [...this.#order.filter((other) => other !== id), id];
    let view = this.#views.get(id);
    if (!view) {
      view = new SessionView(id, this.#client, (requests) => this.#inbox.putPage(requests));
      this.#views.set(id, view);
      void (around === undefined ? view.load() : view.around(around)).catch(() => undefined);
      this.#closeOld();
    } else if (around === undefined) {
      void view.toTail().catch(() => undefined); // from the entry around which the view was opened
    }
    return view;
  }

  /** The queue of a conversation. The first call opens the queue. */
  queue(id: string): QueueView {
    let queue = this.#queues.get(id);
    if (!queue) {
      queue = new QueueView(id, this.#client);
      this.#queues.set(id, queue);
      this.#loadQueue(queue);
    }
    return queue;
  }

  /** Reads a queue until that succeeds: the server sends queued messages by itself, so the person must see them. */
  #loadQueue(queue: QueueView, failures = 0): void {
    queue.load().catch((thrown: unknown) => {
      if (failures === 0) this.#toasts.fail(thrown);
      if (isRefused(thrown)) return;
      setTimeout(
        () => {
          if (!queue.loaded && this.#queues.get(queue.id) === queue) this.#loadQueue(queue, failures + 1);
        },
        backOff(failures, 10_000),
      );
    });
  }

  #closeOld(): void {
    while (this.#order.length > mostOpen) {
      const id = this.#order.find((other) => !this.#shows(other));
      if (id === undefined) return;
      this.close(id);
      this.#conversations.forgetAway(id);
      this.#inbox.dropAnswered(id);
    }
  }

  close(id: string): void {
    this.#order = this.#order.filter((other) => other !== id);
    this.#views.delete(id);
    this.#queues.delete(id);
  }

  /** The loads of everything that is open, after a gap in the feed. */
  loads(): ((signal: AbortSignal) => Promise<void>)[] {
    return [...this.#views.values(), ...this.#queues.values()].map((open) => (signal) => open.load(signal));
  }

  /** Applies events to the transcripts, in their order; events of conversations that are not open are dropped. */
  apply(events: readonly Event[]): void {
    const byView = new Map<SessionView, Event[]>();
    for (const event of events) {
      const view = this.#views.get(event.session ?? '');
      if (!view) continue;
      const list = byView.get(view);
      if (list) list.push(event);
      else byView.set(view, [event]);
    }
    for (const [view, list] of byView) view.apply(list);
  }

  applyToQueue(event: Event): void {
    this.#queues.get(event.session ?? '')?.apply([event]);
  }
}
