import { asApiError, type ApiError } from '../api/errors';
import type { BaseStatus, MergeRequest, RepositoryStatus } from '../api/records';
import type { SessionView } from '../state/session.svelte';
import { client, conversations, toasts } from '../state/state';
import { t, tn } from '../strings/t';
import '../strings/landing';

// What is not committed in the repository of a session, and what a person is about to commit or to merge. A half-written message and the
// choice of files outlive the tab.

/** The refusals after which the list is read again, because something has changed since. */
const stale = [
  'landing.changed',
  'landing.conflict',
  'landing.conflicts',
  'landing.even',
  'landing.file',
  'landing.index',
  'landing.moved',
  'landing.no_merge',
  'landing.published',
  'landing.up_to_date',
];

/** A file of which the commit gets some hunks only. */
export interface Part {
  /** Identifies the text on disk that was shown. */
  digest: string;
  /** The numbers of the hunks that are left out. */
  left: ReadonlySet<number>;
  /** The text that the commit gets. */
  text: string;
}

/** How the commits of a branch come into its base. */
export type How = MergeRequest['how'];

type Work = 'commit' | 'push' | 'fetch' | 'merge' | 'update' | 'resolve';

export class Repository {
  readonly session: string;
  status = $state.raw<RepositoryStatus>();
  /** Why the status could not be read. */
  unread = $state.raw<ApiError>();
  /** The comparison with the base, once it was asked for. */
  base = $state.raw<BaseStatus>();
  /** Why the comparison could not be made. */
  uncompared = $state.raw<ApiError>();
  how = $state<How>('merge');
  /** The message of a merge; undefined until the person has changed the proposal. */
  mergeWritten = $state<string>();
  /** What the last change of the repository was refused for. */
  error = $state.raw<ApiError>();
  /** The files that the person has taken out of the commit. */
  left = $state.raw<ReadonlySet<string>>(new Set());
  /** The files that are committed in part, by their paths. */
  parts = $state.raw<ReadonlyMap<string, Part>>(new Map());
  /** The message; undefined until the person has changed the proposal. */
  written = $state<string>();
  /** The message that asks the agent for a message, until the agent has answered. */
  asked = $state('');
  amend = $state(false);
  noHooks = $state(false);
  running = $state<Work>();
  #loading = 0;
  #comparing = 0;
  #chosenBase = '';

  constructor(session: string) {
    this.session = session;
  }

  readonly chosen = $derived(
    (this.status?.files ?? []).filter(({ path, kind }) => kind !== 'conflict' && !this.left.has(path)),
  );
  readonly message = $derived(
    this.written ??
      (this.amend
        ? (this.status?.subject ?? '')
        : this.chosen.length > 0
          ? (this.status?.message ?? '')
          : ''),
  );
  /** Hooks that nobody has approved stand in the way. */
  readonly held = $derived((this.status?.hooks.length ?? 0) > 0 && !this.noHooks);
  readonly committable = $derived(
    this.running === undefined &&
      !this.held &&
      !this.status?.unfinished &&
      this.message.trim() !== '' &&
      (this.chosen.length > 0 || this.amend),
  );

  /** What a request says about hooks. */
  readonly #hooks = $derived(this.noHooks ? { noHooks: true } : {});
  readonly mergeMessage = $derived(this.mergeWritten ?? this.base?.message ?? '');
  /** One commit is made, which needs a message. */
  readonly worded = $derived(this.how === 'merge' || this.how === 'squash');
  readonly mergeable = $derived(
    this.running === undefined &&
      !this.held &&
      !this.status?.unfinished &&
      this.base !== undefined &&
      !this.base.remote &&
      this.base.ahead > 0 &&
      this.base.conflicts.length === 0 &&
      (this.how !== 'forward' || this.base.behind === 0) &&
      (!this.worded || this.mergeMessage.trim() !== ''),
  );

  /** Compares with another branch; undefined = the one of the last time, or else the most likely one. */
  async compare(base?: string): Promise<void> {
    if (base !== undefined) this.#chosenBase = base;
    const at = ++this.#comparing;
    try {
      const found = await client.call('GET /client/sessions/{id}/repository/base', {
        path: { id: this.session },
        query: this.#chosenBase ? { base: this.#chosenBase } : {},
      });
      if (at !== this.#comparing) return;
      this.base = found;
      this.uncompared = undefined;
    } catch (thrown) {
      if (at !== this.#comparing) return;
      this.uncompared = asApiError(thrown);
      if (this.uncompared.code === 'landing.base') this.#chosenBase = '';
    }
  }

  async load(): Promise<void> {
    const at = ++this.#loading;
    try {
      const status = await client.call('GET /client/sessions/{id}/repository', {
        path: { id: this.session },
      });
      if (at !== this.#loading) return;
      this.status = status;
      this.unread = undefined;
      const there = new Set(status.files.map(({ path }) => path));
      if (this.parts.size > 0) this.parts = new Map([...this.parts].filter(([path]) => there.has(path)));
    } catch (thrown) {
      if (at === this.#loading) this.unread = asApiError(thrown);
    }
  }

  take(path: string, taken: boolean, part?: Part): void {
    const parts = new Map(this.parts);
    if (taken && part) parts.set(path, part);
    else parts.delete(path);
    this.parts = parts;
    const left = new Set(this.left);
    if (taken) left.delete(path);
    else left.add(path);
    this.left = left;
  }

  takeAll(taken: boolean): void {
    this.left = new Set(taken ? [] : this.status?.files.map(({ path }) => path));
    this.parts = new Map();
  }

  async commit(): Promise<void> {
    const { status } = this;
    if (!status || !this.committable) return;
    const parts = [...this.parts].map(([path, { digest, text }]) => ({ path, digest, text }));
    const done = await this.#run('commit', () =>
      client.call('POST /client/sessions/{id}/repository/commit', {
        path: { id: this.session },
        body: {
          ...(status.head ? { head: status.head } : {}),
          paths: this.chosen.flatMap(({ path }) => (this.parts.has(path) ? [] : [path])),
          ...(parts.length > 0 ? { parts } : {}),
          message: this.message,
          ...(this.amend ? { amend: true } : {}),
          ...this.#hooks,
        },
      }),
    );
    if (!done) return;
    this.written = undefined;
    this.amend = false;
    this.left = new Set();
    this.parts = new Map();
    toasts.show({ text: t('landing.committed', { subject: done.subject }), tone: 'info' });
  }

  /** Asks the agent for a message for the chosen files. */
  async ask(): Promise<void> {
    const files = this.chosen.map(({ path, kind }) => `- \`${path}\` (${kind})`).join('\n');
    const text = t('landing.ask.prompt', { files });
    this.asked = text;
    if (!(await conversations.say(this.session, text))) this.asked = '';
  }

  /** Takes the message from the agent's answer, if the answer is there and whole. */
  answered(items: SessionView['items'], running: string | undefined): void {
    if (!this.asked) return;
    const turn = items.findLast(
      ({ entry, text }) => entry.kind === 'user' && text.trim() === this.asked.trim(),
    )?.entry.turn;
    if (!turn || turn === running) return;
    const answer = items.findLast(({ entry }) => entry.kind === 'agent' && entry.turn === turn)?.text ?? '';
    this.asked = '';
    const message = messageIn(answer);
    if (message) this.written = message;
    else toasts.show({ text: t('landing.ask.none'), tone: 'danger' });
  }

  async push(): Promise<void> {
    const done = await this.#run('push', () =>
      client.call('POST /client/sessions/{id}/repository/push', {
        path: { id: this.session },
        body: this.#hooks,
      }),
    );
    if (done) toasts.show({ text: t('landing.pushed', { upstream: done.upstream }), tone: 'info' });
  }

  async fetch(): Promise<void> {
    await this.#run('fetch', async () => {
      await client.call('POST /client/sessions/{id}/repository/fetch', {
        path: { id: this.session },
        body: {},
      });
    });
  }

  /** Merges into the base; stash = what is in the way in the base's worktree is put aside meanwhile. */
  async merge(stash = false): Promise<void> {
    const { base } = this;
    if (!base || !this.mergeable) return;
    const done = await this.#run('merge', () =>
      client.call('POST /client/sessions/{id}/repository/merge', {
        path: { id: this.session },
        body: {
          base: base.base,
          baseCommit: base.baseCommit,
          head: base.head,
          how: this.how,
          ...(this.worded ? { message: this.mergeMessage } : {}),
          ...(stash ? { stash: true } : {}),
          ...this.#hooks,
        },
      }),
    );
    if (!done) return;
    this.mergeWritten = undefined;
    if (done.stashed) {
      const text = t('landing.merged.stashed', { base: done.base, stash: done.stashed.slice(0, 10) });
      toasts.show({ text, tone: 'danger' });
    } else toasts.show({ text: t('landing.merged', { base: done.base }), tone: 'info' });
  }

  /** Brings the base's commits into the branch. With conflicts, the agent is asked to resolve them. */
  async update(how: 'merge' | 'rebase', leave = false): Promise<void> {
    const { base } = this;
    if (!base) return;
    const done = await this.#run('update', () =>
      client.call('POST /client/sessions/{id}/repository/update', {
        path: { id: this.session },
        body: { base: base.base, head: base.head, how, ...(leave ? { leave: true } : {}), ...this.#hooks },
      }),
    );
    if (!done) return;
    if (done.conflicts.length > 0) await this.#askToResolve(base.base, done.conflicts);
    else toasts.show({ text: t('landing.updated', { base: base.base }), tone: 'info' });
  }

  async #askToResolve(base: string, paths: readonly string[]): Promise<void> {
    const files = paths.map((path) => `- \`${path}\``).join('\n');
    if (!(await conversations.say(this.session, t('landing.resolve.prompt', { base, files })))) return;
    toasts.show({ text: tn('landing.resolve.asked', paths.length), tone: 'info' });
  }

  /** Ends a merge or a rebase that waits, or takes it back. */
  async resolve(abort: boolean): Promise<void> {
    const done = await this.#run('resolve', () =>
      client.call('POST /client/sessions/{id}/repository/resolve', {
        path: { id: this.session },
        body: { ...(abort ? { abort: true } : {}), ...this.#hooks },
      }),
    );
    if (!done) return;
    if (done.conflicts.length > 0) await this.#askToResolve(this.base?.base ?? '', done.conflicts);
    else if (done.kept) toasts.show({ text: t('landing.aborted', { ref: done.kept }), tone: 'info' });
  }

  async #reload(): Promise<void> {
    await Promise.all([this.load(), this.base || this.uncompared ? this.compare() : undefined]);
  }

  async #run<T>(what: Work, act: () => Promise<T>): Promise<T | undefined> {
    this.running = what;
    this.error = undefined;
    try {
      const done = await act();
      await this.#reload();
      return done;
    } catch (thrown) {
      this.error = asApiError(thrown);
      if (this.error.code === 'landing.changed') this.take(this.error.params.path ?? '', true);
      if (stale.includes(this.error.code)) await this.#reload();
      return undefined;
    } finally {
      this.running = undefined;
    }
  }
}

/** Returns the message in an agent's answer: its last block of code, or an answer of few lines as it is. */
function messageIn(answer: string): string {
  const blocks = [...answer.matchAll(/^(`{3,})[^\n`]*\n([\s\S]*?)^\1`*[ \t]*$/gm)];
  const last = blocks.at(-1)?.[2];
  if (last !== undefined) return last.trim();
  const text = answer.trim();
  return text.split('\n').length <= 12 ? text : '';
}

const all = new Map<string, Repository>();

/** Returns the repository of a session. */
export function repositoryOf(session: string): Repository {
  for (const id of all.keys()) if (!conversations.sessions.has(id)) all.delete(id);
  let found = all.get(session);
  if (!found) {
    found = new Repository(session);
    all.set(session, found);
  }
  return found;
}
