import { SvelteMap, SvelteSet } from 'svelte/reactivity';
import type { Session } from '../api/records';

/**
 * The conversations that the page knows of. What an agent tells of itself (commands, options) is long, and alike in most of its
 * conversations: it is held once. Each with its own took 14 kB a conversation, for as long as the page was there.
 */
export class Sessions extends SvelteMap<string, Session> {
  #told = new Map<string, unknown>();
  #away = new SvelteSet<string>();

  /** How many there are, with those that were let go. */
  get count(): number {
    return this.size + this.#away.size;
  }

  /** Forgets one that is still there: it is known by its id alone. */
  letGo(id: string): void {
    this.delete(id);
    this.#away.add(id);
  }

  override delete(id: string): boolean {
    this.#away.delete(id);
    return super.delete(id);
  }

  override set(id: string, session: Session): this {
    this.#away.delete(id);
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
