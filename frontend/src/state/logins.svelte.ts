import { SvelteMap } from 'svelte/reactivity';
import type { Client } from '../api/client';
import type { Login } from '../api/records';
import { newest } from './login';

export class Logins {
  /** Logins that run, or ran while this page was open. */
  readonly byId = new SvelteMap<string, Login>();
  /** The agent whose login dialog is shown. */
  shown = $state.raw<string | undefined>();
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Asks again for the logins that ran when the feed was lost. A login that cannot be read keeps its last state. */
  async load(): Promise<void> {
    const running = [...this.byId.values()].filter((login) => login.state === 'running');
    await Promise.allSettled(
      running.map(({ id }) => this.#client.loginState(id).then((login) => this.put(login))),
    );
  }

  put(login: Login): void {
    this.byId.set(login.id, newest(this.byId.get(login.id), login));
  }

  /** Shows the login dialog of an agent. */
  open(agent: string): void {
    this.shown = agent;
  }

  close(): void {
    this.shown = undefined;
  }
}
