import type { Session } from '../api/records';
import { conversations, navigation } from '../state/state';

// In which order the person was in conversations.

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
   * The conversations, the one that was used last first; those of before this start by when something happened in them. The one that is
   * shown stands first, archived or not: without it the first would be taken for it, and passed by.
   */
  list(): Session[] {
    const seen = this.#ids.flatMap((id) => conversations.sessions.get(id) ?? []);
    const rest = conversations.ordered.filter((one) => !this.#ids.includes(one.id));
    const shown = navigation.view.name === 'session' ? navigation.view.id : undefined;
    return [...seen, ...rest].filter((one) => !one.archivedAt || one.id === shown).slice(0, most);
  }
}

export const visits = new Visits();
