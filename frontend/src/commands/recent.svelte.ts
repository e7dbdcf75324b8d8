import type { Session } from '../api/records';
import { app } from '../app.svelte';

// In which order the person was in conversations.

const most = 12;

class Visits {
  #ids: string[] = [];

  constructor() {
    $effect.root(() => {
      $effect(() => {
        const id = app.view.name === 'session' ? app.view.id : undefined;
        if (id !== undefined) this.#ids = [id, ...this.#ids.filter((one) => one !== id)];
      });
    });
  }

  /** The conversations, the one that was used last first; those of before this start by when something happened in them. */
  list(): Session[] {
    const seen = this.#ids.flatMap((id) => app.sessions.get(id) ?? []);
    const rest = app.ordered.filter((one) => !this.#ids.includes(one.id));
    return [...seen, ...rest].filter((one) => !one.archivedAt).slice(0, most);
  }
}

export const visits = new Visits();
