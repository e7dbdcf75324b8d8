import type { Session } from '../api/records';
import { conversations, navigation } from '../state/state';

// The order in which the person visited sessions.

const most = 12;

class Visits {
  #ids: string[] = [];

  constructor() {
    $effect.root(() => {
      $effect(() => {
        const id = navigation.view.name === 'session' ? navigation.view.id : undefined;
        if (id !== undefined) this.#ids = [id, ...this.#ids.filter((one) => one !== id)];
      });
    });
  }

  /**
   * Returns the sessions, the last visited first; sessions of earlier starts follow by their last activity. The visible session is always
   * first, even if archived, because the switcher skips the first.
   */
  list(): Session[] {
    const seen = this.#ids.flatMap((id) => conversations.sessions.get(id) ?? []);
    const rest = conversations.ordered.filter((one) => !this.#ids.includes(one.id));
    const shown = navigation.view.name === 'session' ? navigation.view.id : undefined;
    return [...seen, ...rest].filter((one) => !one.archivedAt || one.id === shown).slice(0, most);
  }
}

export const visits = new Visits();
