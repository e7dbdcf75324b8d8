import type { Client } from '../api/client';
import type { Agent, AgentList, InstallProgress } from '../api/records';
import {
  agentIn,
  answered,
  emptyBook,
  ended,
  progressed,
  upsert,
  withoutFailures,
  type AgentAction,
} from './agents';
import { t } from '../strings/t';
import type { Toasts } from './toasts.svelte';

/** The actions on an agent that perform calls the API for. An agent's card does its other actions itself. */
export type CatalogueAction = Exclude<AgentAction, 'test' | 'login' | 'edit'> | 'cancel';

/** The agents that there are, and how far installations have come. */
export class Catalogue {
  book = $state.raw(emptyBook);
  /** The fault of agents.json. */
  problem = $state('');
  readonly agents = $derived(this.book.listed);
  readonly #client: Client;
  readonly #toasts: Toasts;

  constructor(client: Client, toasts: Toasts) {
    this.#client = client;
    this.#toasts = toasts;
  }

  /** Reads the agents anew, the rest of the catalogue only when it was read before. */
  load(signal?: AbortSignal): Promise<void> {
    return this.#load(this.book.more !== undefined, signal);
  }

  /** Reads the agents anew without asking the login shell again, after a change of their definitions. */
  changed(): Promise<void> {
    return this.load().catch((thrown: unknown) => this.#toasts.fail(thrown));
  }

  /** Has the server look for agents again. */
  async lookAgain(): Promise<void> {
    try {
      this.book = withoutFailures(this.book);
      await this.#load(this.book.more !== undefined, undefined, true);
    } catch (thrown) {
      this.#toasts.fail(thrown);
    }
  }

  /** Reads the rest of the catalogue too. It throws, because the list that asks has a place for the failure. */
  loadRest(): Promise<void> {
    return this.#load(true);
  }

  async #load(all: boolean, signal?: AbortSignal, fresh?: boolean): Promise<void> {
    const asked = this.book;
    const [list, whole] = await Promise.all([
      this.#client.agents(signal, undefined, fresh),
      all ? this.#client.agents(signal, true, fresh) : Promise.resolve<AgentList | undefined>(undefined),
    ]);
    this.book = answered(this.book, asked, list.items, whole?.items);
    this.problem = list.problem ?? '';
  }

  /** Takes an agent as an event tells it, and announces the end of its installation. */
  put(agent: Agent): void {
    const end = ended(agentIn(this.book, agent.id), agent);
    this.book = upsert(this.book, agent);
    if (end) this.#toasts.announce(t(`announce.agent.${end}`, { agent: agent.name }));
  }

  progress(progress: InstallProgress): void {
    this.book = progressed(this.book, progress);
  }

  /** Calls the API for an action; a failure is thrown to the agent's card. Events tell the result. */
  async perform(agent: Agent, action: CatalogueAction): Promise<void> {
    switch (action) {
      case 'install':
      case 'update':
        await this.#client.install(agent.id, agent.pinned);
        return;
      case 'cancel':
        await this.#client.cancelInstall(agent.id);
        return;
      case 'rollback':
        await this.#client.rollback(agent.id);
        return;
      case 'remove':
        await this.#client.removeAgent(agent.id);
    }
  }
}
