import { asApiError, type ApiError } from '../api/errors';
import type { RepositoryStatus } from '../api/records';
import { client, conversations, toasts } from '../state/state';
import { t } from '../strings/t';
import '../strings/landing';

// What is not committed in the repository of a session, and what a person is about to commit. A half-written message and the choice of
// files outlive the tab.

/** The refusals after which the list is read again, because something has changed since. */
const stale = ['landing.conflict', 'landing.file', 'landing.index', 'landing.moved', 'landing.published'];

export class Repository {
  readonly session: string;
  status = $state.raw<RepositoryStatus>();
  /** Why the status could not be read. */
  unread = $state.raw<ApiError>();
  /** Why the last commit or push was refused. */
  error = $state.raw<ApiError>();
  /** The files that the person has taken out of the commit. */
  left = $state.raw<ReadonlySet<string>>(new Set());
  /** The message; undefined until the person has changed the proposal. */
  written = $state<string>();
  amend = $state(false);
  noHooks = $state(false);
  running = $state<'commit' | 'push'>();
  #loading = 0;

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

  async load(): Promise<void> {
    const at = ++this.#loading;
    try {
      const status = await client.call('GET /client/sessions/{id}/repository', {
        path: { id: this.session },
      });
      if (at !== this.#loading) return;
      this.status = status;
      this.unread = undefined;
    } catch (thrown) {
      if (at === this.#loading) this.unread = asApiError(thrown);
    }
  }

  take(path: string, taken: boolean): void {
    const left = new Set(this.left);
    if (taken) left.delete(path);
    else left.add(path);
    this.left = left;
  }

  takeAll(taken: boolean): void {
    this.left = new Set(taken ? [] : this.status?.files.map(({ path }) => path));
  }

  async commit(): Promise<void> {
    const { status } = this;
    if (!status || !this.committable) return;
    const done = await this.#run('commit', () =>
      client.call('POST /client/sessions/{id}/repository/commit', {
        path: { id: this.session },
        body: {
          ...(status.head ? { head: status.head } : {}),
          paths: this.chosen.map(({ path }) => path),
          message: this.message,
          ...(this.amend ? { amend: true } : {}),
          ...(this.noHooks ? { noHooks: true } : {}),
        },
      }),
    );
    if (!done) return;
    this.written = undefined;
    this.amend = false;
    this.left = new Set();
    toasts.show({ text: t('landing.committed', { subject: done.subject }), tone: 'info' });
  }

  async push(): Promise<void> {
    const done = await this.#run('push', () =>
      client.call('POST /client/sessions/{id}/repository/push', {
        path: { id: this.session },
        body: this.noHooks ? { noHooks: true } : {},
      }),
    );
    if (done) toasts.show({ text: t('landing.pushed', { upstream: done.upstream }), tone: 'info' });
  }

  async #run<T>(what: 'commit' | 'push', act: () => Promise<T>): Promise<T | undefined> {
    this.running = what;
    this.error = undefined;
    try {
      const done = await act();
      await this.load();
      return done;
    } catch (thrown) {
      this.error = asApiError(thrown);
      if (stale.includes(this.error.code)) await this.load();
      return undefined;
    } finally {
      this.running = undefined;
    }
  }
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
