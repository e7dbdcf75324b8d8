import type { Client } from '../api/client';
import type { Settings } from '../api/records';
import { takeKeyboard } from '../ui/keys';

/** The person's settings. load also reads the keys of commands, which ui/keys.ts keeps. */
export class Preferences {
  settings = $state.raw<Settings | undefined>();
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Reads settings and keys. A part that cannot be read keeps its last value. */
  async load(signal: AbortSignal): Promise<void> {
    await Promise.allSettled([
      this.#client.settings(signal).then((settings) => (this.settings = settings)),
      this.#client.call('GET /client/keyboard', { signal }).then(takeKeyboard),
    ]);
  }
}
