import { SvelteMap, SvelteSet } from 'svelte/reactivity';
import type { Session } from '../api/records';

/**
 * The sessions that the page knows. Agents report long, mostly equal commands and options; equal values share one object. Separate values
 * took 14 kB a session for the life of the page.
 */
export class Sessions extends SvelteMap<string, Session> {
  #told = new Map<string, unknown>();
  #away = new SvelteSet<string>();

  /** The number of sessions, including those that were let go. */
  get count(): number {
    return this.size + this.#away.size;
  }

  /** Forgets the record of a session that still exists, and remembers its id. */
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
