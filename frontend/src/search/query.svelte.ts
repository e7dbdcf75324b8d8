import { SvelteMap } from 'svelte/reactivity';
import type { Client, SearchQuery } from '../api/client';
import { asApiError, type ApiError } from '../api/errors';
import type { Found } from '../api/records';
import { beginning, end } from './dates';
import { extended, renewed, type Results } from './results';

/** Milliseconds from the last keystroke to the search. */
const typedFor = 120;
/** Milliseconds until the search is repeated while the server still indexes entries. */
const askAgainAfter = 1_500;
const pageSize = 50;

const nothing: Results = { items: [] };

/** The search and its results. They outlive the screen, so that a person returns to the same place. */
export class Search {
  query = $state('');
  /** Ids; an empty id stands for all. */
  agent = $state('');
  workspace = $state('');
  /** Days. */
  from = $state('');
  to = $state('');

  found = $state.raw<Results>(nothing);
  /** The number of entries that are not indexed yet. */
  pending = $state(0);
  /** An answer has come, even if it is empty. */
  answered = $state(false);
  busy = $state(false);
  loadingMore = $state(false);
  error = $state.raw<ApiError | undefined>();
  /** The entry that Enter opens. */
  active = $state<string | undefined>();
  /** The scroll position of the results. */
  scrolled = 0;

  /** The names of agents and the paths of workspaces by id, so that a filter keeps its name when nothing is found. */
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
  /** The query that the results answer. */
  #answers = '';

  constructor(client: Pick<Client, 'find'>) {
    this.#client = client;
  }

  /** Called when the screen opens. Earlier results are refreshed, because there may be more. */
  open(): void {
    this.#open = true;
    if (!this.query.trim()) return;
    void this.#ask(this.answered && this.#answers === JSON.stringify(this.#wanted()) ? 'renew' : 'new');
  }

  /** Called when the screen closes. Running searches end. */
  close(): void {
    this.#open = false;
    this.#stop();
  }

  /** Called when the query or a filter has changed. */
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
      // An answer may arrive although its request was aborted; it is ignored.
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
