import type { Client } from '../api/client';
import { asApiError, type ApiError } from '../api/errors';
import type { AgentSession, Session } from '../api/records';
import { SvelteMap, SvelteSet } from 'svelte/reactivity';

/** The conversations that one agent keeps by itself, and which of them the person wants. */
export class Imports {
  readonly agent: string;
  items = $state.raw<readonly AgentSession[]>([]);
  /** Where the list goes on. */
  next = $state.raw<string | undefined>();
  /** Whether the agent tells its conversations; undefined until it was asked. */
  supported = $state.raw<boolean | undefined>();
  asking = $state(false);
  error = $state.raw<ApiError | undefined>();
  /** What the person has chosen, by its id. */
  readonly chosen = new SvelteSet<string>();
  /** Why one could not be taken, by its id. */
  readonly failed = new SvelteMap<string, ApiError>();
  /** How far it is with what was chosen. */
  taking = $state.raw<{ done: number; all: number } | undefined>();

  #client: Pick<Client, 'agentSessions' | 'importSession'>;
  #asked: AbortController | undefined;
  #directory = '';

  constructor(agent: string, client: Pick<Client, 'agentSessions' | 'importSession'>) {
    this.agent = agent;
    this.#client = client;
  }

  /** Asks for the list anew: of a directory, or of all where it is empty. The agent is started for it. */
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

  /** Which of what is listed can be taken: what is here already cannot. */
  get free(): readonly AgentSession[] {
    return this.items.filter((item) => item.session === undefined || item.session === '');
  }

  choose(id: string, chosen: boolean): void {
    if (chosen) this.chosen.add(id);
    else this.chosen.delete(id);
  }

  /** Takes what was chosen, one after the other; gives what came of it. One that fails keeps none of the others. */
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
      // An agent may tell one twice, when its list has moved between two pages.
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
