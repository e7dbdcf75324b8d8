import type { Client } from '../api/client';
import { asApiError, type ApiError } from '../api/errors';
import type { AgentSession, Session } from '../api/records';
import { SvelteMap, SvelteSet } from 'svelte/reactivity';

/** The sessions that an agent itself has stored, and the person's choice among them. */
export class Imports {
  readonly agent: string;
  items = $state.raw<readonly AgentSession[]>([]);
  /** The cursor of the next page. */
  next = $state.raw<string | undefined>();
  /** The agent can list its sessions; undefined until the agent was asked. */
  supported = $state.raw<boolean | undefined>();
  asking = $state(false);
  error = $state.raw<ApiError | undefined>();
  /** The ids of the chosen sessions. */
  readonly chosen = new SvelteSet<string>();
  /** The errors of failed imports by id. */
  readonly failed = new SvelteMap<string, ApiError>();
  /** The progress of the import. */
  taking = $state.raw<{ done: number; all: number } | undefined>();

  #client: Pick<Client, 'agentSessions' | 'importSession'>;
  #asked: AbortController | undefined;
  #directory = '';

  constructor(agent: string, client: Pick<Client, 'agentSessions' | 'importSession'>) {
    this.agent = agent;
    this.#client = client;
  }

  /** Fetches the list again, for a directory or (with an empty path) for all. The server starts the agent for that. */
  ask(directory: string): Promise<void> {
    this.#directory = directory;
    this.items = [];
    this.next = undefined;
    this.chosen.clear();
    this.failed.clear();
    return this.#page(undefined);
  }

  more(): Promise<void> {
    return this.next === undefined || this.asking ? Promise.resolve() : this.#page(this.next);
  }

  close(): void {
    this.#asked?.abort();
    this.#asked = undefined;
    this.asking = false;
  }

  /** The listed sessions that were not imported yet. */
  get free(): readonly AgentSession[] {
    return this.items.filter((item) => item.session === undefined || item.session === '');
  }

  choose(id: string, chosen: boolean): void {
    if (chosen) this.chosen.add(id);
    else this.chosen.delete(id);
  }

  /** Imports the chosen sessions one after the other, and returns the new sessions. A failure does not stop the others. */
  async take(ids: readonly string[]): Promise<Session[]> {
    const wanted = this.free.filter((item) => ids.includes(item.acpSessionId));
    const taken: Session[] = [];
    this.taking = { done: 0, all: wanted.length };
    for (const item of wanted) {
      this.failed.delete(item.acpSessionId);
      try {
        const session = await this.#client.importSession({
          agent: this.agent,
          acpSessionId: item.acpSessionId,
          cwd: item.cwd,
          ...(item.title ? { title: item.title } : {}),
          ...(item.directories?.length ? { directories: item.directories } : {}),
        });
        taken.push(session);
        this.chosen.delete(item.acpSessionId);
        this.items = this.items.map((one) =>
          one.acpSessionId === item.acpSessionId ? { ...one, session: session.id } : one,
        );
      } catch (thrown) {
        this.failed.set(item.acpSessionId, asApiError(thrown));
      }
      this.taking = { done: this.taking.done + 1, all: wanted.length };
    }
    this.taking = undefined;
    return taken;
  }

  async #page(before: string | undefined): Promise<void> {
    this.close();
    const asked = new AbortController();
    this.#asked = asked;
    this.asking = true;
    this.error = undefined;
    try {
      const page = await this.#client.agentSessions(
        this.agent,
        {
          ...(this.#directory ? { directory: this.#directory } : {}),
          ...(before === undefined ? {} : { before }),
        },
        asked.signal,
      );
      if (this.#asked !== asked) return;
      this.supported = page.supported;
      const known = new Set(this.items.map((item) => item.acpSessionId));
      // An agent may list a session twice when its list moves between two pages.
      this.items = [...this.items, ...page.items.filter((item) => !known.has(item.acpSessionId))];
      this.next = page.next || undefined;
    } catch (thrown) {
      if (this.#asked !== asked) return;
      this.error = asApiError(thrown);
    }
    this.#asked = undefined;
    this.asking = false;
  }
}
