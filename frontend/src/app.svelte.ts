import { SvelteMap } from 'svelte/reactivity';
import type { Client } from './api/client';
import type { DiscordState } from './api/discord';
import { asApiError, isRefused, type ApiError } from './api/errors';
import { backOff, unlimited } from './api/limit';
import { Feed } from './api/events';
import { FrameBatch } from './api/frame';
import { here, type Site } from './api/places';
import type {
  Agent,
  Answer,
  Event,
  ExportFormat,
  Hello,
  InstallProgress,
  Login,
  Page,
  ProcessSum,
  QueuePatch,
  Request,
  Rule,
  Session,
  SessionPatch,
  Settings,
  StorageState,
  Verification,
} from './api/records';
import { QueueView } from './composer/queue.svelte';
import { forgetTyped, forgetTypedBut } from './inbox/kept';
import { late } from './inbox/late';
import { PanelState } from './panel/panel.svelte';
import { Panes } from './panel/panes.svelte';
import { readAt, type Place } from './session/reading';
import { SessionView } from './session/session.svelte';
import { Sessions } from './session/sessions';
import type { Dropped } from './shell/drops';
import { saveFile } from './shell/save';
import { mayOpen } from './shell/survived';
import { copyText, saveExport, surface } from './shell/wails';
import { shared, type compose } from './state/state';
import type { Toasts } from './state/toasts.svelte';
import { t } from './strings/t';
import { titleOf } from './ui/format';
import { statusOf } from './ui/glyph';
import { takeKeyboard, type Keyboard } from './ui/keys';
import { store } from './ui/storage';

export type View =
  | { name: 'session'; id: string; at?: Place }
  | { name: 'search'; back: View }
  | { name: 'inbox'; request?: string }
  | { name: 'new'; cwd?: string; choose?: boolean }
  | { name: 'import'; agent?: string; directory?: string }
  | { name: 'agents'; agent?: string }
  | { name: 'settings'; at?: string }
  | { name: 'mcp' | 'skills'; directory?: string };

export type Link = 'connecting' | 'live' | 'reconnecting' | 'signed_out';

/** How long something may take before it is told of, in milliseconds. */
const slowAfter = 1_000;
/** How many conversations are kept up to date beside the one that is shown. */
const openViews = 6;
const pageSize = 200;
const lastKey = 'deskhand.last';

/** What the page opens by itself as it begins: the conversation that was shown last, unless it seems to have ended the page twice. */
function lastShown(): { id?: string; spared?: string } {
  const id = localStorage.getItem(lastKey);
  if (id === null) return {};
  if (mayOpen(id)) return { id };
  localStorage.removeItem(lastKey);
  return { spared: id };
}

/** The one store of the window: what the server has told, and what is shown. */
export class App {
  readonly #client: Client;
  readonly #toasts: Toasts;
  readonly #state: ReturnType<typeof compose>;
  readonly sessions = new Sessions();
  /** Requests that wait, and those of the conversations that are open. */
  readonly requests = new SvelteMap<string, Request>();
  hello = $state.raw<Hello | undefined>();
  link = $state<Link>('connecting');
  /** Why the link is down. */
  fault = $state.raw<ApiError | undefined>();
  view = $state.raw<View>({ name: 'new' });
  /** The conversations that are shown, beside each other. */
  readonly panes: Panes;
  /** There is room for one of them: the one that is worked in. */
  narrow = $state(false);
  readonly panel = new PanelState();
  /** The workspace whose directory the person looks for. */
  relinking = $state.raw<Pick<Session['workspace'], 'id' | 'path'> | undefined>();
  /** What was dropped for conversations that have not been shown since. */
  readonly given = new SvelteMap<string, Dropped>();
  /** The conversation whose files the person looks through. */
  filesOf = $state.raw<string | undefined>();
  /** Where the list of sessions goes on, and that of archived ones. */
  older = $state.raw<string | undefined>();
  olderArchived = $state.raw<string | undefined>();
  showArchived = $state(false);
  /** Mentions a file in the message of a conversation, and attaches it; false where that conversation is not on the screen. */
  mention: ((session: string, path: string, relative: string) => boolean) | undefined;
  /** When what is shown was last written: everything is, before it is told. */
  savedAt = $state('');
  loaded = $state(false);

  /** Requests that wait in the inbox and were set aside in their conversation. */
  readonly later = new SvelteMap<string, true>();
  /** Conversations of which nothing can be written now, and why. */
  readonly stalls = new SvelteMap<string, string>();

  #views = new Map<string, SessionView>();
  #queues = new Map<string, QueueView>();
  #order: string[] = [];
  #feed: Feed;
  #frames: FrameBatch<Event>;
  /** What begins a conversation and has not ended yet. */
  readonly #beginning = new Set<string>();

  constructor(state = shared) {
    const { client, toasts } = state;
    this.#state = state;
    this.#client = client;
    this.#toasts = toasts;
    this.panes = new Panes({
      transcript: (id, around) => this.transcript(id, around),
      visible: () => this.view.name === 'session',
      entered: (id, at) => this.show({ name: 'session', id, ...(at ? { at } : {}) }),
      recent: () => this.ordered.filter((one) => !one.archivedAt).map((one) => one.id),
      begin: () => this.show({ name: 'new' }),
      emptied: () => this.show({ name: 'new' }),
    });
    this.#frames = new FrameBatch((events) => this.#apply(events));
    this.#feed = new Feed({
      ask: (place, wait, signal) => client.events(place, wait, signal),
      load: (signal) => this.#load(signal),
      apply: (batch) => this.#frames.push(batch.events ?? []),
      link: (link, error) => {
        this.link = link === 'reconnecting' && !this.loaded ? 'connecting' : link;
        this.fault = link === 'live' ? undefined : error;
      },
    });
    client.onQuestion((question) => toasts.announce(t('announce.question', { title: question.title })));
  }

  // Derived lists.

  readonly ordered = $derived.by(() =>
    [...this.sessions.values()].sort((a, b) =>
      a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : 0,
    ),
  );
  readonly inbox = $derived.by(() =>
    [...this.requests.values()]
      .filter((request) => request.status === 'requested')
      .sort((a, b) =>
        a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : a.id < b.id ? -1 : 1,
      ),
  );
  readonly running = $derived(this.ordered.filter((session) => statusOf(session) === 'running').length);
  readonly current = $derived(this.view.name === 'session' ? this.sessions.get(this.view.id) : undefined);

  /** A newer version has made the data: every change would be refused. */
  readonly readOnly = $derived(this.hello?.newer !== undefined);

  waitingIn(session: string): Request[] {
    return this.inbox.filter((request) => request.session === session);
  }

  // Life.

  /** Signs in when the link brought a code, then follows the feed until the page goes. */
  async start(fragment: string, forgetFragment: () => void): Promise<void> {
    try {
      if (await this.#client.login(fragment)) forgetFragment();
    } catch (thrown) {
      forgetFragment();
      this.fault = asApiError(thrown);
      if (this.fault.status !== 0) {
        this.link = 'signed_out';
        return;
      }
    }
    await this.#feed.run();
  }

  wake(): void {
    this.#feed.wake();
  }

  close(): void {
    this.#feed.close();
  }

  /** Found out once a page, however often it has to ask. */
  #last: ReturnType<typeof lastShown> | undefined;

  async #load(signal: AbortSignal): Promise<void> {
    // What still waits belongs to before the gap; the snapshots have it.
    this.#frames.clear();
    this.stalls.clear(); // it is told again while it lasts
    const held = [...this.#views.values(), ...this.#queues.values()];
    // What was shown last is shown again: its transcript comes beside the list, not after it.
    this.#last ??= lastShown();
    if (!this.loaded && this.#last.id !== undefined) this.transcript(this.#last.id);
    const [hello, , page, archived, waiting] = await Promise.all([
      this.#client.hello(signal),
      this.#state.catalogue.load(signal),
      this.#client.sessions({ limit: pageSize }, signal),
      this.showArchived
        ? this.#client.sessions({ limit: pageSize, archived: true }, signal)
        : Promise.resolve<Page<Session>>({ items: [] }),
      this.#client.inbox(signal),
      this.#state.preferences.load(signal),
      this.#state.remotes.load(signal),
      ...held.map((view) => this.#reload(() => view.load(signal))),
    ]);
    this.hello = hello;
    const unlisted = this.#replaceSessions([...page.items, ...archived.items]);
    this.savedAt = this.ordered[0]?.updatedAt ?? '';
    this.older = page.next;
    this.olderArchived = archived.next;
    const open = new Set(waiting.map((request) => request.id));
    for (const request of this.requests.values()) {
      // It was resolved while nobody listened, and no page has told how; what begins to wait meanwhile is told by its event. Or it is asked
      // again: an answer that had not reached its agent when the program ended is wanted anew.
      if ((request.status === 'requested') !== open.has(request.id)) this.requests.delete(request.id);
    }
    forgetTypedBut(open);
    this.#putRequests(waiting);
    if (!this.loaded) {
      this.loaded = true;
      this.#firstView();
    }
    await Promise.all([
      // The status bar and the settings show these. The conversations go on without them, and come first.
      this.#state.machine.load(signal),
      this.#state.logins.load(),
      this.#state.rules.load(signal).catch(() => undefined),
      // They are put away, old ones, or were deleted.
      ...unlisted.map((id) =>
        this.#reload(async () => this.sessions.set(id, await this.#client.session(id)), id),
      ),
    ]);
  }

  /** A conversation that is gone must not keep the others from loading; it shows its own error, or leaves where its id is given. */
  async #reload(load: () => Promise<unknown>, id = ''): Promise<void> {
    try {
      await load();
    } catch (thrown) {
      if (!isRefused(thrown) || thrown.status === 401) throw thrown;
      if (id && thrown.status === 404) this.#removeSession(id);
    }
  }

  /** Gives those that are shown, and not among them. */
  #replaceSessions(items: readonly Session[]): string[] {
    const fresh = new Set(items.map((session) => session.id));
    for (const id of [...this.sessions.keys()]) {
      if (!fresh.has(id) && !this.panes.shows(id)) this.sessions.delete(id);
    }
    for (const session of items) this.sessions.set(session.id, session);
    return this.panes.list.map((pane) => pane.session).filter((id) => !fresh.has(id));
  }

  #firstView(): void {
    const { id: last, spared } = this.#last ?? {};
    const left = this.sessions.get(spared ?? '');
    if (left) this.#toasts.show({ text: t('session.spared', { title: titleOf(left) }), tone: 'danger' });
    const listed = (id: string) => this.sessions.get(id)?.archivedAt === undefined && this.sessions.has(id);
    if (!last || !listed(last)) return;
    const beside = Panes.kept().filter(listed);
    if (beside.length > 1 && beside.includes(last)) this.panes.restore(beside, last);
    const at = readAt(last);
    this.show({ name: 'session', id: last, ...(at ? { at } : {}) });
  }

  #apply(events: readonly Event[]): void {
    const { catalogue, logins, machine, preferences, remotes, rules } = this.#state;
    const bySession = new Map<string, Event[]>();
    for (const event of events) {
      switch (event.type) {
        case 'session.upsert':
          this.#putSession(event.data as Session);
          break;
        case 'session.removed':
          this.#removeSession((event.data as { id: string }).id);
          break;
        case 'request.upsert':
          this.#putRequest(event.data as Request);
          break;
        case 'agent.upsert':
          catalogue.put(event.data as Agent);
          break;
        case 'install.progress':
          catalogue.progress(event.data as InstallProgress);
          break;
        case 'login.upsert':
          logins.put(event.data as Login);
          break;
        case 'process.upsert':
          machine.processes = event.data as ProcessSum;
          break;
        case 'settings.upsert':
          preferences.settings = event.data as Settings;
          break;
        case 'keyboard.upsert':
          takeKeyboard(event.data as Keyboard);
          break;
        case 'place.upsert':
          remotes.put(event.data as Site);
          break;
        case 'place.removed':
          remotes.drop((event.data as { id: string }).id);
          break;
        case 'rule.upsert':
          rules.put(event.data as Rule);
          break;
        case 'rule.removed':
          rules.drop((event.data as { id: string }).id);
          break;
        case 'storage.upsert':
          machine.storage = event.data as StorageState;
          break;
        case 'verify.upsert':
          machine.verification = event.data as Verification;
          break;
        case 'discord.upsert':
          machine.discord = event.data as DiscordState;
          break;
        case 'notice':
          void import('./status/notices').then(({ handleNotice }) => handleNotice(this, this.#toasts, event));
          break;
        case 'queue.upsert':
        case 'queue.removed':
          this.#queues.get(event.session ?? '')?.apply([event]);
          break;
        default: {
          if (!event.session || !this.#views.has(event.session)) break;
          const list = bySession.get(event.session);
          if (list) list.push(event);
          else bySession.set(event.session, [event]);
        }
      }
    }
    for (const [id, list] of bySession) this.#views.get(id)?.apply(list);
    this.savedAt = events.findLast((event) => event.session && event.type !== 'notice')?.at ?? this.savedAt;
    this.#client.deliver(events);
  }

  #putSession(session: Session): void {
    const before = this.sessions.get(session.id);
    this.sessions.set(session.id, session);
    if (before?.turn && !session.turn) {
      this.#toasts.announce(t('announce.finished', { agent: session.agentName, title: titleOf(session) }));
    }
    this.#seen(session);
    this.#forgetAway(session.id);
  }

  /** What is put away is held while it is shown, or listed: otherwise the page would grow by each for as long as it is there. */
  #forgetAway(id: string): void {
    const one = this.sessions.get(id);
    if (!one?.archivedAt || this.showArchived || one.turn || one.waiting > 0 || this.panes.shows(id)) return;
    this.sessions.letGo(id);
  }

  /** It was deleted, here or elsewhere: nothing of it is shown any more. */
  #removeSession(id: string): void {
    this.sessions.delete(id);
    for (const request of [...this.requests.values()]) {
      if (request.session !== id) continue;
      this.requests.delete(request.id);
      this.later.delete(request.id);
    }
    this.#forgetView(id);
    this.panes.drop(id);
    if (this.view.name === 'search' && this.view.back.name === 'session' && this.view.back.id === id)
      this.view = { name: 'search', back: { name: 'new' } };
    if (localStorage.getItem(lastKey) === id) localStorage.removeItem(lastKey);
  }

  #forgetView(id: string): void {
    this.#order = this.#order.filter((one) => one !== id);
    this.#views.delete(id);
    this.#queues.delete(id);
  }

  #putRequest(request: Request): void {
    const known = this.requests.has(request.id);
    if (request.status === 'requested' || known || this.#views.has(request.session)) {
      this.requests.set(request.id, request);
    }
    if (request.status !== 'requested') {
      this.later.delete(request.id);
      forgetTyped(request.id);
    }
    if (!known && request.status === 'requested' && ['permission', 'trust'].includes(request.kind)) {
      this.#toasts.announce(t('announce.approval', { title: request.title }));
    }
  }

  #putRequests(requests: readonly Request[]): void {
    for (const request of requests) {
      // A page may be older than what was told meanwhile, and nothing begins to wait twice.
      const over = (this.requests.get(request.id)?.status ?? 'requested') !== 'requested';
      if (!over || request.status !== 'requested') this.requests.set(request.id, request);
    }
  }

  // What is shown.

  show(view: View): void {
    const visible = this.view.name === 'session';
    this.view = view;
    if (view.name !== 'session') return;
    this.panes.show(view.id, view.at, visible);
    store(lastKey, view.id);
    const session = this.sessions.get(view.id);
    if (session) this.#seen(session);
  }

  /** The transcript of a session, kept up to date from the first time it is asked for. */
  transcript(id: string, around?: number): SessionView {
    this.#order = [...this.#order.filter((one) => one !== id), id];
    let view = this.#views.get(id);
    if (!view) {
      view = new SessionView(id, this.#client, (requests) => this.#putRequests(requests));
      this.#views.set(id, view);
      void (around === undefined ? view.load() : view.around(around)).catch(() => undefined);
      this.#closeOldViews();
    } else if (around === undefined) {
      void view.toTail().catch(() => undefined); // from wherever something was looked up in it
    }
    return view;
  }

  /** What is queued in a session, kept up to date like its transcript. */
  queue(id: string): QueueView {
    let view = this.#queues.get(id);
    if (!view) {
      view = new QueueView(id, this.#client);
      this.#queues.set(id, view);
      this.#loadQueue(view);
    }
    return view;
  }

  /** What waits is sent by itself: where it could not be read it is read again, until it is known. */
  #loadQueue(view: QueueView, failures = 0): void {
    view.load().catch((thrown: unknown) => {
      if (failures === 0) this.#toasts.fail(thrown);
      if (isRefused(thrown)) return;
      setTimeout(
        () => {
          if (!view.loaded && this.#queues.get(view.id) === view) this.#loadQueue(view, failures + 1);
        },
        backOff(failures, 10_000),
      );
    });
  }

  #closeOldViews(): void {
    while (this.#order.length > openViews) {
      const id = this.#order.find((one) => !this.panes.shows(one));
      if (id === undefined) return;
      this.#order = this.#order.filter((one) => one !== id);
      this.#views.delete(id);
      this.#queues.delete(id);
      this.#forgetAway(id);
      for (const request of [...this.requests.values()]) {
        if (request.session === id && request.status !== 'requested') this.requests.delete(request.id);
      }
    }
  }

  /** What happened in the conversation that the person looks at needs no mark. */
  #seen(session: Session): void {
    if (!session.unread || this.readOnly || document.visibilityState === 'hidden') return;
    const shown = this.narrow ? this.current?.id === session.id : this.panes.shows(session.id);
    if (this.view.name === 'session' && shown) void this.patch(session.id, { unread: false });
  }

  /** The page has come to the front. */
  visible(): void {
    this.#state.wallClock.now = Date.now();
    for (const pane of this.panes.list) {
      const session = this.sessions.get(pane.session);
      if (session) this.#seen(session);
    }
    this.#feed.wake();
  }

  async loadOlderSessions(): Promise<void> {
    const { older, olderArchived } = this;
    try {
      if (older !== undefined) {
        const page = await this.#client.sessions({ limit: pageSize, before: older });
        this.#addSessions(page.items);
        this.older = page.next;
      }
      if (olderArchived !== undefined && this.showArchived) {
        const page = await this.#client.sessions({ limit: pageSize, before: olderArchived, archived: true });
        this.#addSessions(page.items);
        this.olderArchived = page.next;
      }
    } catch (thrown) {
      this.#toasts.fail(thrown);
    }
  }

  async setShowArchived(show: boolean): Promise<void> {
    this.showArchived = show;
    if (!show) {
      for (const id of [...this.sessions.keys()]) this.#forgetAway(id);
      return;
    }
    try {
      const page = await this.#client.sessions({ limit: pageSize, archived: true });
      this.#addSessions(page.items);
      this.olderArchived = page.next;
    } catch (thrown) {
      this.#toasts.fail(thrown);
    }
  }

  /** Takes sessions of a page; one that is held came by an event and is newer. */
  #addSessions(items: readonly Session[]): void {
    for (const session of items) if (!this.sessions.has(session.id)) this.sessions.set(session.id, session);
  }

  /** Shows a conversation, or a place in it, also of one that no list has brought yet. */
  async open(id: string, at?: Place): Promise<void> {
    try {
      if (!this.sessions.has(id)) this.#addSessions([await this.#client.session(id)]);
      this.show({ name: 'session', id, ...(at ? { at } : {}) });
    } catch (thrown) {
      this.#toasts.fail(thrown);
    }
  }

  /** Shows the search; it leads back to what was shown before, there at the place where the person was. */
  search(seq?: number): void {
    const { view } = this;
    if (view.name === 'search') {
      this.view = { ...view }; // asked for anew: its field takes the focus
      return;
    }
    if (view.name !== 'session') {
      this.show({ name: 'search', back: view });
      return;
    }
    const at: Place | undefined = seq === undefined ? undefined : { seq, look: 'place' };
    this.show({ name: 'search', back: { name: 'session', id: view.id, ...(at ? { at } : {}) } });
  }

  // What a person does. Failures are shown, and thrown where the caller has something to keep.

  async create(
    agent: string,
    cwd: string,
    {
      place = here,
      directories = [],
      branch,
    }: { place?: string; directories?: readonly string[]; branch?: string | undefined } = {},
  ): Promise<Session> {
    const { view } = this;
    const session = await this.#client.createSession({
      agent,
      cwd,
      ...(place === here ? {} : { place }),
      ...(directories.length > 0 ? { directories: [...directories] } : {}),
      ...(branch === undefined ? {} : { worktree: true, branch }),
    });
    if (!this.sessions.has(session.id)) this.sessions.set(session.id, session);
    if (this.view === view) this.show({ name: 'session', id: session.id }); // who has gone elsewhere meanwhile stays there
    return session;
  }

  /** Whether it is done; what failed is told. */
  async patch(id: string, patch: SessionPatch): Promise<boolean> {
    try {
      // The answer is not taken: the event that tells the same has its place among the others.
      await this.#client.patchSession(id, patch);
      return true;
    } catch (thrown) {
      this.#toasts.fail(thrown);
      return false;
    }
  }

  async archive(session: Session): Promise<void> {
    const archived = session.archivedAt === undefined;
    if (!(await this.patch(session.id, { archived })) || !archived) return;
    this.#toasts.show({
      text: t('sidebar.archived', { title: titleOf(session) }),
      tone: 'info',
      undo: () => void this.patch(session.id, { archived: false }),
    });
    this.panes.drop(session.id);
    this.#forgetAway(session.id);
  }

  /** Deletes a conversation. The event that follows takes it out of every list, wherever it is shown. */
  async delete(session: Session): Promise<void> {
    try {
      await this.#client.deleteSession(session.id);
    } catch (thrown) {
      this.#toasts.fail(thrown);
      return;
    }
    this.#toasts.show({
      text: t('lifecycle.deleted', { title: titleOf(session) }),
      tone: 'info',
      undo: () => void this.#restore(session.id, this.view.name === 'new'),
    });
  }

  /** Deletes a conversation, once a person has said what becomes of its worktree where it has one. */
  async askToDelete(session: Session): Promise<void> {
    if (session.worktree?.state !== 'ready') return this.delete(session);
    (await import('./worktree/acts')).askToRemove(session, true);
  }

  async #restore(id: string, show: boolean): Promise<void> {
    try {
      const session = await this.#client.restoreSession(id);
      if (!this.sessions.has(id)) this.sessions.set(id, session);
      if (show) this.show({ name: 'session', id });
    } catch (thrown) {
      this.#toasts.fail(thrown);
    }
  }

  /** Begins a conversation that knows what this one does, and leaves this one as it is. */
  fork(session: Session): Promise<void> {
    return this.#begin(`fork ${session.id}`, t('lifecycle.forking', { title: titleOf(session) }), () =>
      this.#client.forkSession(session.id),
    );
  }

  /** Goes on with another agent, in a conversation of its own; what is handed over stands in its draft. */
  continueWith(session: Session, agent: string): Promise<void> {
    return this.#begin(
      `continue ${session.id} ${agent}`,
      t('lifecycle.continuing', { title: titleOf(session) }),
      () => this.#client.continueSession(session.id, agent),
    );
  }

  /** An agent may have to start first, and a long history to be copied: that is told, and can be given up. A second click begins no other. */
  async #begin(what: string, telling: string, call: () => Promise<Session>): Promise<void> {
    if (this.#beginning.has(what)) return;
    this.#beginning.add(what);
    const { view } = this;
    let toast = 0;
    let cancelled = false;
    const cancel = () => {
      cancelled = true;
      this.#beginning.delete(what);
    };
    const slow = setTimeout(
      () => (toast = this.#toasts.hold({ text: telling, tone: 'info', cancel })),
      slowAfter,
    );
    try {
      const session = await call().finally(() => {
        clearTimeout(slow);
        this.#toasts.dismiss(toast);
      });
      if (cancelled) {
        await this.#client.deleteSession(session.id); // the server has gone on with it
        return;
      }
      if (!this.sessions.has(session.id)) this.sessions.set(session.id, session);
      // Who has gone elsewhere meanwhile stays there.
      if (this.view === view) this.show({ name: 'session', id: session.id });
    } catch (thrown) {
      this.#toasts.fail(thrown);
    } finally {
      if (!cancelled) this.#beginning.delete(what);
    }
  }

  async copyId(session: Session): Promise<void> {
    try {
      await copyText(session.id);
      this.#toasts.show({ text: t('lifecycle.id_copied'), tone: 'info' });
    } catch (thrown) {
      this.#toasts.fail(thrown);
    }
  }

  /** Saves a conversation as a file. */
  async export(session: Session, format: ExportFormat): Promise<void> {
    try {
      if (surface() === 'window') {
        const path = await saveExport(
          t(`export.title.${format}`),
          `/client/sessions/${encodeURIComponent(session.id)}/export?format=${format}`,
        );
        if (path !== undefined) this.#toasts.show({ text: t('export.done', { name: path }), tone: 'info' });
        return;
      }
      const { name, content } = await this.#client.exportSession(
        session.id,
        format,
        unlimited(), // it takes as long as the conversation is long
      );
      saveFile(name, content);
      this.#toasts.show({ text: t('export.done', { name }), tone: 'info' });
    } catch (thrown) {
      this.#toasts.fail(thrown);
    }
  }

  async stop(id: string): Promise<void> {
    try {
      await this.#client.cancel(id);
    } catch (thrown) {
      this.#toasts.fail(thrown);
    }
  }

  /** Changes what is queued: whether it is done; what failed is told. The answer is not taken: events tell of it in their order. */
  async changeQueued(id: string, item: string, patch: QueuePatch): Promise<boolean> {
    try {
      await this.#client.changeQueued(id, item, patch);
      return true;
    } catch (thrown) {
      this.#toasts.fail(thrown);
      return false;
    }
  }

  async removeQueued(id: string, item: string): Promise<void> {
    try {
      await this.#client.removeQueued(id, item);
    } catch (thrown) {
      this.#toasts.fail(thrown);
      return;
    }
    this.#toasts.show({
      text: t('queue.deleted'),
      tone: 'info',
      undo: () =>
        void this.#client.restoreQueued(id, item).catch((thrown: unknown) => {
          this.#toasts.fail(thrown);
        }),
    });
  }

  async restart(id: string): Promise<void> {
    try {
      await this.#client.restart(id);
    } catch (thrown) {
      this.#toasts.fail(thrown);
    }
  }

  /** Whether it is done; what failed is told. */
  async configure(id: string, option: string, value: string | boolean): Promise<boolean> {
    try {
      await this.#client.setConfig(id, option, value);
      return true;
    } catch (thrown) {
      this.#toasts.fail(thrown);
      return false;
    }
  }

  /**
   * Gives an answer; the first one wins, wherever it is given. False = another one was first, which the person is told. A failure is
   * told as well, and thrown; who asks for quiet has a place of its own for it.
   */
  async answer(request: Request, answer: Answer, quiet = false): Promise<boolean> {
    try {
      if (request.kind === 'question') {
        if (answer.answers) await this.#client.replyQuestion(request, answer.answers);
        else await this.#client.rejectQuestion(request);
      } else {
        await this.#client.answer(request.id, answer);
      }
      return true;
    } catch (thrown) {
      const error = asApiError(thrown);
      if (error.code !== 'request.resolved') {
        if (!quiet) this.#toasts.fail(error);
        throw error;
      }
      this.#toasts.show({ text: late(error), tone: 'danger' });
      return false;
    }
  }
}

export const app = new App();
