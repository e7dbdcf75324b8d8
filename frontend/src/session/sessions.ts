import { SvelteMap } from 'svelte/reactivity';
import type { Session } from '../api/records';

/**
 * The conversations that the page knows of. What an agent tells of itself (commands, options) is long, and alike in most of its
 * conversations: it is held once. Each with its own took 14 kB a conversation, for as long as the page was there.
 */
export class Sessions extends SvelteMap<string, Session> {
  #told = new Map<string, unknown>();

  override set(id: string, session: Session): this {
    const commands = this.#once(session.commands);
    const configOptions = this.#once(session.configOptions);
    return super.set(id, { ...session, commands, configOptions });
  }

  #once<T>(told: T): T {
    const text = JSON.stringify(told);
    const held = this.#told.get(text);
    if (held !== undefined) return held as T;
    const [oldest] = this.#told.keys();
    if (oldest !== undefined && this.#told.size >= 64) this.#told.delete(oldest);
    this.#told.set(text, told);
    return told;
  }
}
