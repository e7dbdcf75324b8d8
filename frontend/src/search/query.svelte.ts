import { SvelteMap } from 'svelte/reactivity';
import type { Client, SearchQuery } from '../api/client';
import { asApiError, type ApiError } from '../api/errors';
import type { Found } from '../api/records';
import { beginning, end } from './dates';
import { extended, renewed, type Results } from './results';

/** After the last key; searching at every one would answer what nobody waits for. */
const typedFor = 120;
/** How long the server may take to make more entries searchable before it is asked again. */
const askAgainAfter = 1_500;
const pageSize = 50;

const nothing: Results = { items: [] };

/** What is looked for and what was found. It outlives the screen, so that one comes back to where one was. */
export class Search {
  query = $state('');
  /** Ids; empty for all. */
  agent = $state('');
  workspace = $state('');
  /** Days. */
  from = $state('');
  to = $state('');

  found = $state.raw<Results>(nothing);
  /** How many entries are not in the index yet. */
  pending = $state(0);
  /** There are results, even if nothing was found. */
  answered = $state(false);
  busy = $state(false);
  loadingMore = $state(false);
  error = $state.raw<ApiError | undefined>();
  /** The entry that Enter would open. */
  active = $state<string | undefined>();
  /** How far the results are scrolled. */
  scrolled = 0;

  /** Names and paths of what was found, by id: a filter keeps its name when nothing is found by it any more. */
  readonly agents = new SvelteMap<string, string>();
  readonly directories = new SvelteMap<string, string>();

  readonly fromWrong = $derived(this.from !== '' && beginning(this.from) === undefined);
  readonly toWrong = $derived(this.to !== '' && end(this.to) === undefined);
  readonly filtered = $derived(
    this.agent !== '' || this.workspace !== '' || this.from !== '' || this.to !== '',
  );

  #client: Pick<Client, 'find'>;
  #asking: AbortController | undefined;
  #typed: ReturnType<typeof setTimeout> | undefined;
  #later: ReturnType<typeof setTimeout> | undefined;
  #open = false;
  /** What the results answer. */
  #answers = '';

  constructor(client: Pick<Client, 'find'>) {
    this.#client = client;
  }

  /** The screen is shown. What was found before may have become more. */
  open(): void {
    this.#open = true;
    if (!this.query.trim()) return;
    void this.#ask(this.answered && this.#answers === JSON.stringify(this.#wanted()) ? 'renew' : 'new');
  }

  /** The screen has gone: nobody waits for anything. */
  close(): void {
    this.#open = false;
    this.#stop();
  }

  /** What is looked for has changed. */
  changed(): void {
    this.#stop();
    if (!this.query.trim()) {
      this.#clear();
      return;
    }
    this.busy = true;
    this.#typed = setTimeout(() => void this.#ask('new'), typedFor);
  }

  /** Searches at once. */
  now(): void {
    this.#stop();
    if (this.query.trim()) void this.#ask('new');
  }

  clearFilters(): void {
    this.agent = this.workspace = this.from = this.to = '';
    this.changed();
  }

  more(): Promise<void> {
    return this.found.next === undefined || this.busy || this.loadingMore
      ? Promise.resolve()
      : this.#ask('more');
  }

  #stop(): void {
    clearTimeout(this.#typed);
    clearTimeout(this.#later);
    this.#asking?.abort();
    this.#asking = undefined;
    this.busy = this.loadingMore = false;
  }

  #clear(): void {
    this.found = nothing;
    this.answered = false;
    this.error = this.active = undefined;
    this.pending = 0;
    this.scrolled = 0;
  }

  #wanted(): SearchQuery {
    return {
      q: this.query.trim(),
      agent: this.agent,
      workspace: this.workspace,
      from: beginning(this.from) ?? '',
      to: end(this.to) ?? '',
    };
  }

  async #ask(how: 'new' | 'renew' | 'more'): Promise<void> {
    this.#stop();
    const asking = new AbortController();
    this.#asking = asking;
    this.busy = how === 'new';
    this.loadingMore = how === 'more';
    const before = how === 'more' ? this.found.next : undefined;
    const wanted = this.#wanted();
    try {
      const page = await this.#client.find(
        { ...wanted, limit: pageSize, ...(before === undefined ? {} : { before }) },
        asking.signal,
      );
      // Aborting ends the request; an answer that had come by then must not count either.
      if (this.#asking !== asking) return;
      this.#take(page, how);
      this.#answers = JSON.stringify(wanted);
    } catch (thrown) {
      if (this.#asking !== asking) return;
      this.error = asApiError(thrown);
      if (how === 'new') {
        this.found = nothing;
        this.answered = false;
        this.active = undefined;
        this.pending = 0;
      }
    }
    this.#asking = undefined;
    this.busy = this.loadingMore = false;
    if (this.pending > 0 && this.#open)
      this.#later = setTimeout(() => void this.#ask('renew'), askAgainAfter);
  }

  #take(page: Found, how: 'new' | 'renew' | 'more'): void {
    for (const hit of page.items) {
      this.agents.set(hit.agent, hit.agentName);
      this.directories.set(hit.workspace.id, hit.workspace.path);
    }
    this.error = undefined;
    this.pending = page.pending ?? 0;
    this.answered = true;
    if (how === 'more') this.found = extended(this.found, page);
    else if (how === 'renew') this.found = renewed(this.found, page);
    else this.found = page;
    if (how === 'new') this.scrolled = 0;
    const { items } = this.found;
    if (how === 'new' || !items.some((hit) => hit.entry === this.active)) this.active = items[0]?.entry;
  }
}
