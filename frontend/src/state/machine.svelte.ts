import type { Client } from '../api/client';
import type { DiscordState } from '../api/records';
import type { ProcessSum, StorageState, Verification } from '../api/records';
import { sumOf } from './usage';

/** The state of the program itself, for the status and the settings: processes, stored data, connection to Discord. */
export class Machine {
  /** The processes that the program has started; undefined before the first answer. */
  processes = $state.raw<ProcessSum | undefined>();
  /** The size of the stored data, and the progress of a rebuild. */
  storage = $state.raw<StorageState | undefined>();
  verification = $state.raw<Verification | undefined>();
  discord = $state.raw<DiscordState | undefined>();
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Reads everything anew. A part that cannot be read keeps its last value. */
  async load(signal: AbortSignal): Promise<void> {
    await Promise.allSettled([
      this.#client.processes(signal).then((list) => (this.processes = sumOf(list))),
      this.#client.storage(signal).then((storage) => (this.storage = storage)),
      this.#client.verification(signal).then((verification) => (this.verification = verification)),
      this.#client.call('GET /client/discord', { signal }).then((discord) => (this.discord = discord)),
    ]);
  }
}
