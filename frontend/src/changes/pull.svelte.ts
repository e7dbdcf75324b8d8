import { ApiError, asApiError } from '../api/errors';
import type { FailedCheck, PullRequest, PullRequestStatus, ReviewComment } from '../api/records';
import { client, conversations, toasts } from '../state/state';
import { t, tn } from '../strings/t';
import '../strings/landing';
import '../strings/pulls';

// The pull request of a session's branch, and one that a person is about to make. What is half written outlives the tab.

/** How a host is reached. */
export type Use = NonNullable<PullRequestStatus['use']>;

/** How often the server is asked while somebody looks. The server asks the forge less often. */
const pause = 60_000;

/** The refusals that only a person at the repository can change. */
const quiet = /^(landing\.|forge\.address$|directory\.|not_found$)/;

export class Pull {
  readonly session: string;
  status = $state.raw<PullRequestStatus>();
  /** Why there is no status. */
  unread = $state.raw<ApiError>();
  /** What the last step was refused for. */
  error = $state.raw<ApiError>();
  /** The person wants a pull request: the form is shown, or the question that goes before it. */
  wanted = $state(false);
  /** The title and the text; undefined until the proposal is there. */
  title = $state<string>();
  text = $state<string>();
  draft = $state(false);
  /** The address of the forge's page that makes the pull request. */
  page = $state('');
  running = $state<'create' | 'choose' | 'load'>();
  /** The comments and checks that the agent was told of. */
  sent = $state.raw<ReadonlySet<string>>(new Set());
  #base = $state('');
  #loading = 0;
  #followers = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(session: string) {
    this.session = session;
  }

  readonly request = $derived(this.status?.pullRequest);
  /** A pull request that waits for something. */
  readonly open = $derived(
    this.request && (this.request.state === 'open' || this.request.state === 'draft')
      ? this.request
      : undefined,
  );
  readonly base = $derived(this.#base || (this.status?.base ?? ''));
  /** How its number is written. */
  readonly name = $derived(
    this.request ? `${this.status?.forge === 'gitlab' ? '!' : '#'}${this.request.number.toString()}` : '',
  );
  readonly refused = $derived.by(() => {
    const why = this.status?.refused;
    return why && new ApiError(why.code, why.params, 409);
  });

  setBase(name: string): void {
    this.#base = name;
  }

  /** Asks now and while somebody looks at the page. Returns a function that ends that. */
  follow(): () => void {
    if (++this.#followers === 1) {
      document.addEventListener('visibilitychange', this.#look);
      window.addEventListener('focus', this.#look);
    }
    this.#look();
    return () => {
      if (--this.#followers > 0) return;
      document.removeEventListener('visibilitychange', this.#look);
      window.removeEventListener('focus', this.#look);
      clearTimeout(this.#timer);
    };
  }

  readonly #look = (): void => {
    clearTimeout(this.#timer);
    if (document.visibilityState !== 'visible') return;
    void this.load().then(() => {
      clearTimeout(this.#timer);
      if (this.#followers > 0 && !(this.unread && quiet.test(this.unread.code)))
        this.#timer = setTimeout(this.#look, pause);
    });
  };

  /** Reads the status; fresh = the person wants a new answer of the forge. */
  async load(fresh = false): Promise<void> {
    const at = ++this.#loading;
    if (fresh) this.running = 'load';
    try {
      const status = await client.call('GET /client/sessions/{id}/pull-request', {
        path: { id: this.session },
        query: fresh ? { fresh: true } : {},
      });
      if (at !== this.#loading) return;
      if (this.status && this.status.branch !== status.branch) this.#forget();
      this.status = status;
      this.unread = undefined;
    } catch (thrown) {
      if (at !== this.#loading) return;
      this.unread = asApiError(thrown);
      if (this.unread.status >= 400) this.status = undefined;
    } finally {
      if (fresh && this.running === 'load') this.running = undefined;
    }
  }

  /** Another branch has another pull request. */
  #forget(): void {
    this.wanted = false;
    this.title = this.text = this.error = undefined;
    this.page = this.#base = '';
    this.sent = new Set();
  }

  /** Begins a pull request. */
  async want(): Promise<void> {
    this.wanted = true;
    this.error = undefined;
    this.page = '';
    if (!this.status) await this.load();
    if (this.title !== undefined) return;
    try {
      const { title, text } = await client.call('GET /client/sessions/{id}/pull-request/proposal', {
        path: { id: this.session },
        query: this.base ? { base: this.base } : {},
      });
      this.title ??= title;
      this.text ??= text;
    } catch (thrown) {
      this.title ??= '';
      this.error = asApiError(thrown);
    }
  }

  giveUp(): void {
    this.wanted = false;
    this.error = undefined;
    this.page = '';
  }

  /** Stores how the host is reached. */
  async choose(use: Use): Promise<void> {
    const host = this.status?.host;
    if (!host) return;
    this.running = 'choose';
    this.error = undefined;
    try {
      await client.call('PUT /client/forges/{host}', { path: { host }, body: { use } });
      await this.load(true);
    } catch (thrown) {
      this.error = asApiError(thrown);
    } finally {
      this.running = undefined;
    }
  }

  /** Pushes what the remote lacks, and makes the pull request. Reports whether it was made, or its page is there. */
  async create(noHooks: boolean): Promise<boolean> {
    const { status } = this;
    if (!status || this.running) return false;
    this.running = 'create';
    this.error = undefined;
    try {
      const done = await client.call('POST /client/sessions/{id}/pull-request', {
        path: { id: this.session },
        body: {
          branch: status.branch,
          base: this.base,
          title: this.title ?? '',
          text: this.text ?? '',
          ...(this.draft ? { draft: true } : {}),
          ...(noHooks ? { noHooks: true } : {}),
        },
      });
      if (done.page) this.page = done.page;
      if (done.pullRequest) {
        this.#forget();
        this.status = { ...status, unpushed: 0, pullRequest: done.pullRequest };
        toasts.show({ text: t('pull.created', { name: this.name }), tone: 'info' });
      }
      void this.load();
      return true;
    } catch (thrown) {
      this.error = asApiError(thrown);
      if (this.error.code === 'forge.exists' || this.error.code === 'forge.moved') void this.load(true);
      return false;
    } finally {
      this.running = undefined;
    }
  }

  /** Tells the agent of a failed check or a comment. */
  async send(about: FailedCheck | ReviewComment): Promise<void> {
    if (!(await conversations.say(this.session, messageAbout(about, this.name)))) return;
    this.sent = new Set([...this.sent, keyOf(about)]);
    toasts.show({ text: t('pull.sent'), tone: 'info' });
  }
}

/** Identifies a check or a comment in its pull request. */
export function keyOf(about: FailedCheck | ReviewComment): string {
  return 'author' in about ? about.id : `${about.name} ${about.url ?? ''}`;
}

/** The message that tells an agent of a failed check or a comment of a pull request. What others have written is a quotation. */
export function messageAbout(about: FailedCheck | ReviewComment, name: string): string {
  if (!('author' in about))
    return about.url
      ? t('pull.send.check.at', { check: about.name, name, url: about.url })
      : t('pull.send.check', { check: about.name, name });
  const { author, path, line } = about;
  const text = about.text.replace(/^/gm, '> ');
  if (!path) return t('pull.send.comment', { author, name, text });
  return t('pull.send.comment.file', {
    author,
    name,
    text,
    path: line ? `${path}:${line.toString()}` : path,
  });
}

/** The state of a pull request as a mark tells it. */
export function markOf(request: PullRequest): 'ended' | 'failing' | 'pending' | 'ok' {
  if (request.state === 'merged' || request.state === 'closed') return 'ended';
  if (request.checks.failed.length > 0 || request.review === 'changes' || request.mergeable === 'conflicts')
    return 'failing';
  if (request.checks.pending > 0 || request.review === 'required') return 'pending';
  return 'ok';
}

/** What a pull request waits for, in words. */
export function waitsFor(request: PullRequest): string[] {
  if (markOf(request) === 'ended') return [];
  const { checks, review, mergeable, base, comments } = request;
  return [
    checks.failed.length > 0 ? tn('pull.checks.failed', checks.failed.length) : '',
    checks.pending > 0 ? tn('pull.checks.pending', checks.pending) : '',
    checks.failed.length + checks.pending === 0 && checks.passed > 0
      ? tn('pull.checks.passed', checks.passed)
      : '',
    review === 'none' ? '' : t(`pull.review.${review}`),
    mergeable === 'conflicts' ? t('pull.merge.conflicts', { base }) : '',
    mergeable === 'blocked' && review === 'approved' && checks.failed.length + checks.pending === 0
      ? t('pull.merge.blocked')
      : '',
    comments.length > 0 ? tn('pull.comments', comments.length) : '',
  ].filter(Boolean);
}

const all = new Map<string, Pull>();

/** Returns the pull request of a session. */
export function pullOf(session: string): Pull {
  for (const id of all.keys()) if (!conversations.sessions.has(id)) all.delete(id);
  let found = all.get(session);
  if (!found) {
    found = new Pull(session);
    all.set(session, found);
  }
  return found;
}
