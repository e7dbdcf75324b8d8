import { type Place, readAt } from './reading';
import type { SessionView } from './session.svelte';
import { store } from '../ui/storage';

// Up to four sessions beside each other, of which one is active. App.svelte draws the panes; keys and the list choose among them.

interface Pane {
  readonly key: number;
  readonly session: string;
  readonly view: SessionView;
  /** The place to show in the transcript. */
  readonly at: Place | undefined;
}

type Direction = 'left' | 'right' | 'up' | 'down';

/** The functions that panes need from their owner. */
interface Host {
  /** Returns the transcript of a session, kept up to date while it is visible. */
  transcript: (session: string, around?: number) => SessionView;
  /** Reports whether the panes are on the screen. */
  visible: () => boolean;
  /** Called before a session becomes the active pane's. */
  entered: (session: string, at: Place | undefined) => void;
  /** Returns the sessions that can be shown, the newest first. */
  recent: () => readonly string[];
  /** Called when there is no other session yet, to begin one. */
  begin: () => void;
  /** Called when the last pane was closed. */
  emptied: () => void;
}

const mostPanes = 4;
const keptKey = 'deskhand.panes';

/** Returns the index of a neighbour. Panes stand two in a row; of three the last is as wide as both. */
export function neighbour(at: number, count: number, direction: Direction): number | undefined {
  const row = Math.floor(at / 2);
  const column = at % 2;
  const wide = count === 3 && at === 2;
  switch (direction) {
    case 'left':
      return !wide && column === 1 ? at - 1 : undefined;
    case 'right':
      return !wide && column === 0 && at + 1 < count ? at + 1 : undefined;
    case 'up':
      return row === 1 ? at - 2 : undefined;
    case 'down':
      return row === 0 && count > 2 ? Math.min(at + 2, count - 1) : undefined;
  }
}

export class Panes {
  list = $state.raw<readonly Pane[]>([]);
  /** The key of the active pane. */
  active = $state(0);
  /** The next session gets a pane of its own. */
  #beside = false;
  #next = 1;
  readonly #host: Host;

  constructor(host: Host) {
    this.#host = host;
  }

  get current(): Pane | undefined {
    return this.list.find((pane) => pane.key === this.active);
  }

  shows(session: string): boolean {
    return this.list.some((pane) => pane.session === session);
  }

  /** Shows a session in its pane, otherwise in the active pane. */
  show(session: string, at: Place | undefined, visible: boolean): void {
    const there = this.list.find((pane) => pane.session === session);
    const beside = this.#beside && this.list.length < mostPanes;
    this.#beside = false;
    // A visible pane keeps its scroll position.
    const view = there && visible && !at ? there.view : this.#host.transcript(session, at?.seq);
    // Another session gets another key, so that no state of the earlier session stays.
    const pane: Pane = { key: there?.key ?? this.#next++, session, view, at };
    const worked = this.list.findIndex((one) => one.key === this.active);
    if (there) this.list = this.list.map((one) => (one === there ? pane : one));
    else if (beside || worked < 0) this.list = this.list.toSpliced(worked + 1, 0, pane);
    else this.list = this.list.with(worked, pane);
    this.active = pane.key;
    this.#keep();
  }

  /** Opens another pane, with the given session or the one that was used last. */
  split(session?: string): void {
    if (session !== undefined && (this.shows(session) || this.list.length >= mostPanes)) {
      this.#host.entered(session, undefined);
      return;
    }
    if (this.list.length >= mostPanes) return;
    const other = session ?? this.#host.recent().find((id) => !this.shows(id));
    this.#beside = true;
    if (other === undefined) this.#host.begin();
    else this.#host.entered(other, undefined);
  }

  /** Makes a pane active. */
  enter(key: number): void {
    const pane = this.list.find((one) => one.key === key);
    if (!pane || key === this.active) return;
    this.active = key;
    if (this.#host.visible()) this.#host.entered(pane.session, undefined);
  }

  step(direction: Direction): void {
    const at = this.list.findIndex((pane) => pane.key === this.active);
    const to = at < 0 ? undefined : neighbour(at, this.list.length, direction);
    const pane = to === undefined ? undefined : this.list[to];
    if (pane) this.enter(pane.key);
  }

  /** Closes a pane. Its session runs on. */
  close(key = this.active): void {
    const at = this.list.findIndex((pane) => pane.key === key);
    if (at < 0) return;
    this.list = this.list.filter((pane) => pane.key !== key);
    this.#keep();
    if (key !== this.active) return;
    const next = this.list[Math.min(at, this.list.length - 1)];
    if (next) this.enter(next.key);
    else if (this.#host.visible()) this.#host.emptied();
  }

  /** Removes a session's pane. */
  drop(session: string): void {
    const pane = this.list.find((one) => one.session === session);
    if (pane) this.close(pane.key);
  }

  /** Returns the sessions of the panes when the window was closed, the active pane's last. */
  static kept(): readonly string[] {
    try {
      const kept: unknown = JSON.parse(localStorage.getItem(keptKey) ?? '[]');
      return Array.isArray(kept) ? kept.filter((id) => typeof id === 'string').slice(0, mostPanes) : [];
    } catch {
      return [];
    }
  }

  /** Shows the stored panes in their order, each at the place that was read. */
  restore(sessions: readonly string[], active: string): void {
    this.list = sessions.map((session) => {
      const at = readAt(session);
      return { key: this.#next++, session, view: this.#host.transcript(session, at?.seq), at };
    });
    this.active = this.list.find((pane) => pane.session === active)?.key ?? 0;
  }

  #keep(): void {
    store(keptKey, JSON.stringify(this.list.map((pane) => pane.session)));
  }
}
