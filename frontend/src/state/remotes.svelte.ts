import type { Client } from '../api/client';
import { here, type Site } from '../api/places';
import type { Session } from '../api/records';
import { t } from '../strings/t';

/** The machines where agents run. */
export class Remotes {
  /** This computer first, then the others by their names. */
  list = $state.raw<readonly Site[]>([]);
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Reads the list anew; when that fails the list stays as it is. */
  async load(signal: AbortSignal): Promise<void> {
    const list = await this.#client.places(signal).catch(() => undefined);
    if (list) this.list = list;
  }

  put(site: Site): void {
    const [local, ...rest] = this.list.filter((other) => other.id !== site.id);
    const list = [...rest, site].sort((a, b) => a.name.localeCompare(b.name));
    this.list = local ? [local, ...list] : list;
  }

  drop(id: string): void {
    this.list = this.list.filter((site) => site.id !== id);
  }

  /** The machine of a conversation; undefined for this computer. */
  of(session: Session): Site | undefined {
    if (session.place === here) return undefined;
    return (
      this.list.find((site) => site.id === session.place) ?? {
        id: session.place,
        name: t('places.gone'),
        url: '',
        state: 'unknown',
      }
    );
  }
}
