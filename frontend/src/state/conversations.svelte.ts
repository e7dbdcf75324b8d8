import { SvelteMap } from 'svelte/reactivity';
import type { Client } from '../api/client';
import type { QueuePatch, Session, SessionPage, SessionPatch } from '../api/records';
import { Sessions } from './sessions';
import { t } from '../strings/t';
import { titleOf } from '../ui/format';
import { heldBy } from '../ui/glyph';
import type { Toasts } from './toasts.svelte';

const pageSize = 200;

/** The first page of the list, and that of the archived conversations when those are listed too. */
interface ListStart {
  active: SessionPage;
  archived: SessionPage;
}

/** The list of conversations, and the changes of one conversation whose failures are toasts. */
export class Conversations {
  readonly sessions = new Sessions();
  /** Where the list goes on, and the list of archived conversations. */
  older = $state.raw<string | undefined>();
  olderArchived = $state.raw<string | undefined>();
  showArchived = $state(false);
  /** The conversations of which the server can store nothing now, each with the reason. */
  readonly stalls = new SvelteMap<string, string>();
  /** The conversations of persons, the last changed first. */
  readonly ordered = $derived.by(() =>
    [...this.sessions.values()]
      .filter(({ subagent }) => !subagent)
      .sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : 0)),
  );
  /** The sessions of subagents that the page knows, by the id of the session whose agent has begun them, the oldest first. */
  readonly subagents = $derived.by(() => {
    const of = new Map<string, Session[]>();
    for (const session of this.sessions.values()) {
      const parent = session.subagent?.parent;
      if (parent !== undefined) of.set(parent, [...(of.get(parent) ?? []), session]);
    }
    for (const list of of.values()) list.sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
    return of;
  });
  /** The conversations whose agents are held by a set-up that has failed or was stopped, the last changed first. */
  readonly held = $derived(this.ordered.filter((session) => heldBy(session) !== undefined));
  /** The branches of conversations, the oldest first. */
  readonly branches = $derived(
    this.ordered
      .filter(({ origin }) => origin?.kind === 'branch')
      .sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1)),
  );
  readonly #client: Client;
  readonly #toasts: Toasts;
  readonly #shows: (id: string) => boolean;

  /** The function shows says whether a pane shows a conversation. */
  constructor(client: Client, toasts: Toasts, shows: (id: string) => boolean) {
    this.#client = client;
    this.#toasts = toasts;
    this.#shows = shows;
  }

  /** Reads the start of the list; replace puts it in place. */
  async readStart(signal: AbortSignal): Promise<ListStart> {
    const [active, archived] = await Promise.all([
      this.#client.sessions({ limit: pageSize }, signal),
      this.showArchived
        ? this.#client.sessions({ limit: pageSize, archived: true }, signal)
        : Promise.resolve<SessionPage>({ items: [] }),
    ]);
    return { active, archived };
  }

  /** Replaces the list by its start, and returns the ids in it. A conversation that a pane shows stays even when it is not among them. */
  replace({ active, archived }: ListStart): ReadonlySet<string> {
    const items = [...active.items, ...archived.items];
    const fresh = new Set(items.map((session) => session.id));
    for (const id of [...this.sessions.keys()]) {
      if (!fresh.has(id) && !this.#shows(id)) this.sessions.delete(id);
    }
    for (const session of items) this.sessions.set(session.id, session);
    this.older = active.next;
    this.olderArchived = archived.next;
    return fresh;
  }

  /** Takes a conversation from an event, and announces the end of its turn. */
  put(session: Session): void {
    const before = this.sessions.get(session.id);
    this.sessions.set(session.id, session);
    if (before?.turn && !session.turn && !session.subagent) {
      this.#toasts.announce(t('announce.finished', { agent: session.agentName, title: titleOf(session) }));
    }
  }

  /** Takes conversations from answers of the API. A conversation that is in the list came by an event and is newer. */
  add(...sessions: readonly Session[]): void {
    for (const session of sessions) {
      if (!this.sessions.has(session.id)) this.sessions.set(session.id, session);
    }
  }

  /** Reads a conversation that no page of the list has brought yet. */
  async find(id: string): Promise<void> {
    if (!this.sessions.has(id)) this.add(await this.#client.session(id));
  }

  /** Reads the sessions of the subagents of a conversation. Those that came by an event are newer. */
  async readSubagents(id: string): Promise<void> {
    try {
      const page = await this.#client.sessions({ limit: 1000, of: id });
      this.add(...page.items);
    } catch (thrown) {
      this.#toasts.fail(thrown);
    }
  }

  /** Reads a conversation anew. */
  async reload(id: string): Promise<void> {
    this.sessions.set(id, await this.#client.session(id));
  }

  /** Forgets an archived conversation that nothing shows or lists: the page would grow by each for as long as the page lives. */
  forgetAway(id: string): void {
    const session = this.sessions.get(id);
    if (!session?.archivedAt || this.showArchived || session.turn || session.waiting > 0 || this.#shows(id))
      return;
    this.sessions.letGo(id);
  }

  async loadOlder(): Promise<void> {
    const { older, olderArchived } = this;
    try {
      if (older !== undefined) {
        const page = await this.#client.sessions({ limit: pageSize, before: older });
        this.add(...page.items);
        this.older = page.next;
      }
      if (olderArchived !== undefined && this.showArchived) {
        const page = await this.#client.sessions({ limit: pageSize, before: olderArchived, archived: true });
        this.add(...page.items);
        this.olderArchived = page.next;
      }
    } catch (thrown) {
      this.#toasts.fail(thrown);
    }
  }

  async setShowArchived(show: boolean): Promise<void> {
    this.showArchived = show;
    if (!show) {
      for (const id of [...this.sessions.keys()]) this.forgetAway(id);
      return;
    }
    try {
      const page = await this.#client.sessions({ limit: pageSize, archived: true });
      this.add(...page.items);
      this.olderArchived = page.next;
    } catch (thrown) {
      this.#toasts.fail(thrown);
    }
  }

  // The following methods change one conversation. They ignore the answer's record, because the server also sends an event for each change,
  // in order with its other events. A boolean result reports whether the server made the change; a failure is shown as a toast.

  patch(id: string, patch: SessionPatch): Promise<boolean> {
    return this.#try(this.#client.patchSession(id, patch));
  }

  configure(id: string, option: string, value: string | boolean): Promise<boolean> {
    return this.#try(this.#client.setConfig(id, option, value));
  }

  async stop(id: string): Promise<void> {
    await this.#try(this.#client.cancel(id));
  }

  async restart(id: string): Promise<void> {
    await this.#try(this.#client.call('POST /client/sessions/{id}/restart', { path: { id } }));
  }

  /** Sends a message that did not come from the composer. The draft stays. */
  say(id: string, message: string, attachments: readonly string[] = []): Promise<boolean> {
    return this.#try(this.#client.prompt(id, message, 'queue', attachments));
  }

  changeQueued(id: string, item: string, patch: QueuePatch): Promise<boolean> {
    return this.#try(this.#client.changeQueued(id, item, patch));
  }

  /** Removes a message from the queue and offers to put it back. */
  async removeQueued(id: string, item: string): Promise<void> {
    if (!(await this.#try(this.#client.removeQueued(id, item)))) return;
    this.#toasts.show({
      text: t('queue.deleted'),
      tone: 'info',
      undo: () =>
        void this.#try(
          this.#client.call('POST /client/sessions/{id}/queue/{item}/restore', { path: { id, item } }),
        ),
    });
  }

  async #try(call: Promise<unknown>): Promise<boolean> {
    try {
      await call;
      return true;
    } catch (thrown) {
      this.#toasts.fail(thrown);
      return false;
    }
  }
}
