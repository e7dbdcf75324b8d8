import { asApiError, type ApiError } from '../api/errors';
import { unlimited } from '../api/limit';
import type { ComparisonResults, MemberResult, NewMember } from '../api/records';
import { tellLeft } from '../changes/review.svelte';
import { client, comparisons, toasts } from '../state/state';
import '../strings/changes';
import '../strings/compare';
import '../strings/landing';
import '../strings/worktree';
import { t, tn } from '../strings/t';
import { problemText } from './member';
import { takenPaths } from './table';

// What the members of a comparison have made, and what a person does with that. The shown file and the chosen files outlive the screen.

/**
 * The least time in milliseconds between the end of a read and the next one. Each read goes through all worktrees, so slow reads are rarer: they
 * take a quarter of the time at most.
 */
const pace = 1_000;

/** The files of one member that are to be taken into another one. */
interface Chosen {
  from: string;
  paths: ReadonlySet<string>;
}

type Work = 'add' | 'begin' | 'take' | 'test' | 'files';

class Board {
  readonly id: string;
  results = $state.raw<ComparisonResults>();
  /** Why the results could not be read. */
  error = $state.raw<ApiError>();
  /** The file whose differences are shown. */
  path = $state<string>();
  chosen = $state.raw<Chosen>();
  running = $state<Work>();
  #readAt = -Infinity;
  #took = 0;
  #reading = false;
  #again = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(id: string) {
    this.id = id;
  }

  /** Reads the results soon: at once, or when the pace allows it. A hidden page reads nothing. */
  refresh(): void {
    if (document.visibilityState === 'hidden' || this.#timer !== undefined) return;
    if (this.#reading) {
      this.#again = true;
      return;
    }
    const wait = this.#readAt + Math.max(pace, 3 * this.#took) - performance.now();
    if (wait <= 0) void this.load();
    else
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        void this.load();
      }, wait);
  }

  async load(): Promise<void> {
    this.#reading = true;
    this.#again = false;
    const began = performance.now();
    try {
      this.#put(await client.call('GET /client/comparisons/{id}', { path: { id: this.id } }));
      this.error = undefined;
    } catch (thrown) {
      this.error = asApiError(thrown);
    }
    this.#reading = false;
    this.#readAt = performance.now();
    this.#took = this.#readAt - began;
    if (this.#again) this.refresh();
  }

  /** Ends what waits, when the screen is left. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#again = false;
  }

  /** Takes new results. Files that are no longer changed are no longer chosen, and members whose conversations were deleted are gone. */
  #put(results: ComparisonResults): void {
    this.results = results;
    const { message: _message, results: _results, test: _test, ...comparison } = results;
    const known = comparisons.byId.get(this.id);
    if (known && JSON.stringify(known.members) !== JSON.stringify(comparison.members))
      comparisons.put(comparison);
    const { chosen } = this;
    if (!chosen) return;
    const files = this.of(chosen.from)?.files ?? [];
    this.choose(
      chosen.from,
      files.filter(({ path }) => chosen.paths.has(path)).map(({ path }) => path),
    );
  }

  of(session: string): MemberResult | undefined {
    return this.results?.results.find((one) => one.session.id === session);
  }

  nameOf(session: string): string {
    return this.of(session)?.name ?? '';
  }

  /** Chooses files of one member, instead of those that were chosen. */
  choose(from: string, paths: readonly string[]): void {
    this.chosen = paths.length > 0 ? { from, paths: new Set(paths) } : undefined;
  }

  /** Chooses a file beside those of the same member, or leaves it out. */
  toggle(from: string, path: string, chosen: boolean): void {
    const others = this.chosen?.from === from ? [...this.chosen.paths].filter((one) => one !== path) : [];
    this.choose(from, chosen ? [...others, path] : others);
  }

  async add(member: NewMember): Promise<void> {
    await this.#run('add', () =>
      client.call('POST /client/comparisons/{id}/members', {
        path: { id: this.id },
        body: member,
        once: true,
        signal: unlimited(),
      }),
    );
  }

  /** Makes the session of a member that could not begin. */
  async begin(session: string): Promise<void> {
    await this.#run('begin', () =>
      client.call('POST /client/comparisons/{id}/members/{session}/begin', {
        path: { id: this.id, session },
        signal: unlimited(),
      }),
    );
  }

  /** Takes a member; what could not be removed of the others stands in the comparison. Failures are thrown. */
  async take(session: string): Promise<boolean> {
    this.running = 'take';
    try {
      const taken = await client.call('POST /client/comparisons/{id}/members/{session}/take', {
        path: { id: this.id, session },
        signal: unlimited(),
      });
      comparisons.put(taken);
      const left = taken.members.find((one) => one.session !== session && one.problem);
      if (left) {
        const text = t('compare.taken.left', { name: left.name, why: problemText(left) });
        toasts.show({ text, tone: 'danger' });
      } else {
        toasts.show({ text: t('compare.take.done', { name: this.nameOf(session) }), tone: 'info' });
      }
      return left === undefined;
    } finally {
      this.running = undefined;
      this.refresh();
    }
  }

  /** Runs the project's tests in all worktrees, or stops them. hash is the command that was shown and is approved by this. */
  async test(stop: boolean, hash?: string): Promise<boolean> {
    const results = await this.#run('test', () =>
      client.call('POST /client/comparisons/{id}/test', {
        path: { id: this.id },
        body: stop ? { stop } : hash ? { hash } : {},
        signal: unlimited(),
      }),
    );
    if (results) this.#put(results);
    return results !== undefined;
  }

  /** Gives files of a member the content that they have in another one, and offers to undo that. */
  async takeFiles(from: string, to: string, paths: readonly string[]): Promise<void> {
    const files = (this.of(from)?.files ?? []).filter(({ path }) => paths.includes(path));
    const restored = await this.#run('files', () =>
      client.call('POST /client/comparisons/{id}/files', {
        path: { id: this.id },
        body: { from, to, paths: takenPaths(files) },
        signal: unlimited(),
      }),
    );
    if (!restored) return;
    const names = { from: this.nameOf(from), to: this.nameOf(to) };
    const n = restored.files.filter(({ outcome }) => outcome === 'restored' || outcome === 'removed').length;
    const alone = tellLeft(restored.files.filter(({ outcome }) => outcome === 'conflict'));
    if (n === 0) {
      if (!alone) toasts.show({ text: t('compare.took.same', names), tone: 'info' });
      return;
    }
    if (this.chosen?.from === from) this.chosen = undefined;
    const undo = () => void this.#takeBack(to, restored.id, n);
    toasts.show({ text: tn('compare.took', n, names), tone: 'info', undo });
  }

  /** Undoes a restoration in the directory of a member. */
  async #takeBack(session: string, restoration: string, n: number): Promise<void> {
    const done = await this.#run('files', () =>
      client.call('POST /client/sessions/{id}/changes/restorations/{restoration}/undo', {
        path: { id: session, restoration },
        signal: unlimited(),
      }),
    );
    if (!done || tellLeft(done.files.filter(({ outcome }) => outcome === 'conflict'))) return;
    toasts.show({ text: tn('compare.took.back', n, { to: this.nameOf(session) }), tone: 'info' });
  }

  async #run<T>(what: Work, act: () => Promise<T>): Promise<T | undefined> {
    this.running = what;
    try {
      return await act();
    } catch (thrown) {
      toasts.fail(thrown);
      return undefined;
    } finally {
      this.running = undefined;
      this.refresh();
    }
  }
}

export type { Board };

const all = new Map<string, Board>();

/** Returns the board of a comparison. */
export function boardOf(id: string): Board {
  for (const known of all.keys()) if (!comparisons.byId.has(known)) all.delete(known);
  const found = all.get(id) ?? new Board(id);
  all.set(id, found);
  return found;
}
