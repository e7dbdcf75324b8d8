import { SvelteMap, SvelteSet } from 'svelte/reactivity';
import type { Client } from '../api/client';
import { errorText } from '../ui/format';
import type { TreeEntry } from '../api/records';
import { rowsOf, wayTo, type Known } from './rows';

/** The files of a session as far as they were read. The tree outlives the tab. */
class Tree {
  readonly session: string;
  roots = $state.raw<readonly TreeEntry[]>([]);
  fault = $state('');
  loaded = $state(false);
  readonly known = new SvelteMap<string, Known>();
  readonly open = new SvelteSet<string>();
  /** The row that keys act on. */
  active = $state<string | undefined>();
  /** The open file and its line. */
  shown = $state.raw<{ path: string; line?: number | undefined } | undefined>();

  #client: Client;
  #asked = new Map<string, number>();
  #count = 0;

  // Not $derived, because a derived value ends with the component that read it first, and the tree outlives the tab.
  get rows() {
    return rowsOf(this.roots, this.known, this.open);
  }

  get directories() {
    return this.roots.map((one) => one.path);
  }

  constructor(client: Client, session: string) {
    this.#client = client;
    this.session = session;
  }

  /** Reads all open directories again. The earlier lists stay until the answers come. */
  async look(signal: AbortSignal): Promise<void> {
    try {
      const { items } = await this.#list(undefined, signal);
      const first = !this.loaded;
      this.roots = items;
      this.fault = '';
      this.loaded = true;
      if (first) for (const root of items) if (!root.missing) this.open.add(root.path);
    } catch (thrown) {
      if (!signal.aborted) this.fault = errorText(thrown);
      return;
    }
    const wanted = new Set<string>();
    for (const root of this.roots)
      if (!root.missing && (this.roots.length === 1 || this.open.has(root.path))) wanted.add(root.path);
    for (const row of this.rows) if (row.kind === 'entry' && row.open) wanted.add(row.entry.path);
    await Promise.all([...wanted].map((path) => this.list(path, signal)));
  }

  /** Lists a directory, or the session's directories where no path is given. */
  #list(path: string | undefined, signal: AbortSignal) {
    const { session: id } = this;
    return this.#client.call('GET /client/sessions/{id}/tree', { path: { id }, query: { path }, signal });
  }

  /** Reads a directory. */
  async list(path: string, signal: AbortSignal): Promise<void> {
    const number = ++this.#count;
    this.#asked.set(path, number);
    if (!this.known.has(path)) this.known.set(path, { state: 'loading' });
    let now: Known;
    try {
      now = { state: 'there', ...(await this.#list(path, signal)) };
    } catch (thrown) {
      if (signal.aborted) return;
      now = { state: 'fault', text: errorText(thrown) };
    }
    if (this.#asked.get(path) === number) this.known.set(path, now); // a later read may have been faster
  }

  async toggle(path: string, signal: AbortSignal, open = !this.open.has(path)): Promise<void> {
    if (!open) {
      this.open.delete(path);
      return;
    }
    this.open.add(path);
    await this.list(path, signal);
  }

  /** Opens the directories that lead to a file, and the file. */
  async show(path: string, line: number | undefined, signal: AbortSignal): Promise<void> {
    this.shown = { path, line };
    await this.reach(path, signal);
  }

  /** Opens the directories that lead to a path. */
  async reach(path: string, signal: AbortSignal): Promise<void> {
    this.active = path;
    for (const directory of wayTo(this.directories, path)) {
      this.open.add(directory);
      if (this.known.get(directory)?.state !== 'there') await this.list(directory, signal);
    }
  }
}

const most = 8;
const trees = new Map<string, Tree>();

export function treeOf(client: Client, session: string): Tree {
  const tree = trees.get(session) ?? new Tree(client, session);
  trees.delete(session);
  trees.set(session, tree);
  for (const old of [...trees.keys()].slice(0, -most)) trees.delete(old);
  return tree;
}
