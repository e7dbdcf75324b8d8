import type { Session } from '../api/records';
import { PanelState } from './panel.svelte';
import { Panes } from './panes.svelte';
import { readAt, type Place } from './reading';
import type { Dropped } from '../shell/drops';
import { mayOpen } from '../shell/survived';
import { t } from '../strings/t';
import { titleOf } from '../ui/format';
import { projectOf, type Project } from '../ui/recent';
import { store } from '../ui/storage';
import type { Conversations } from './conversations.svelte';
import type { Server } from './server.svelte';
import type { Toasts } from './toasts.svelte';
import type { Transcripts } from './transcripts';

type View =
  | { name: 'session'; id: string; at?: Place }
  | { name: 'search'; back: View }
  | { name: 'inbox'; request?: string }
  | { name: 'compare'; id: string }
  | {
      name: 'new';
      cwd?: string;
      place?: string;
      agent?: string;
      near?: Project;
      given?: Dropped;
      choose?: boolean;
    }
  | { name: 'import'; agent?: string; directory?: string }
  | { name: 'settings'; at?: string; agent?: string; directory?: string };

const lastKey = 'deskhand.last';

/** Returns the last shown conversation as id, or as spared when showing that conversation may have crashed the page twice. */
function lastShown(): { id?: string; spared?: string } {
  const id = localStorage.getItem(lastKey);
  if (id === null) return {};
  if (mayOpen(id)) return { id };
  localStorage.removeItem(lastKey);
  return { spared: id };
}

/** The visible part of the page: the view, the panes, the side panel, and the dialogs that other views open. */
export class Navigation {
  view = $state.raw<View>({ name: 'new' });
  /** The conversations that are shown beside each other. */
  readonly panes: Panes;
  readonly panel = new PanelState();
  /** Whether there is room for one pane only: the active one. */
  narrow = $state(false);
  /** The workspace whose directory the person is asked for. */
  relinking = $state.raw<Pick<Session['workspace'], 'id' | 'path'> | undefined>();
  /** The conversation whose files a dialog lists. */
  filesOf = $state.raw<string | undefined>();
  /** Mentions a file in the message of a conversation, and attaches it; false when that conversation is not on the screen. */
  mention: ((session: string, path: string, relative: string) => boolean) | undefined;
  readonly current = $derived.by(() =>
    this.view.name === 'session' ? this.#conversations.sessions.get(this.view.id) : undefined,
  );
  readonly #toasts: Toasts;
  readonly #server: Server;
  readonly #conversations: Conversations;
  /** Found once a page, however often the feed has to begin anew. */
  #last: ReturnType<typeof lastShown> | undefined;

  constructor(toasts: Toasts, server: Server, conversations: Conversations, transcripts: Transcripts) {
    this.#toasts = toasts;
    this.#server = server;
    this.#conversations = conversations;
    this.panes = new Panes({
      transcript: (id, around) => transcripts.view(id, around),
      visible: () => this.view.name === 'session',
      entered: (id, at) => this.show({ name: 'session', id, ...(at ? { at } : {}) }),
      recent: () => conversations.ordered.filter((session) => !session.archivedAt).map(({ id }) => id),
      begin: () => this.begin(),
      emptied: () => this.show({ name: 'new' }),
    });
  }

  show(view: View): void {
    const visible = this.view.name === 'session';
    this.view = view;
    if (view.name !== 'session') return;
    this.panes.show(view.id, view.at, visible);
    store(lastKey, view.id);
    const session = this.#conversations.sessions.get(view.id);
    if (session) this.markRead(session);
  }

  /** Shows the composer of a new conversation: in the project of the current one, unless a message is written for another. */
  begin(): void {
    this.show({ name: 'new', ...(this.current ? { near: projectOf(this.current) } : {}) });
  }

  /** Shows a conversation, or a place in it, whether or not the list has brought that conversation yet. */
  async open(id: string, at?: Place): Promise<void> {
    try {
      await this.#conversations.find(id);
      this.show({ name: 'session', id, ...(at ? { at } : {}) });
    } catch (thrown) {
      this.#toasts.fail(thrown);
    }
  }

  /** Shows the search. Its way back leads to the view before, in a conversation to the entry seq. */
  search(seq?: number): void {
    const { view } = this;
    if (view.name === 'search') {
      this.view = { ...view }; // a new view has the search's field take the focus again
      return;
    }
    if (view.name !== 'session') {
      this.show({ name: 'search', back: view });
      return;
    }
    const at: Place | undefined = seq === undefined ? undefined : { seq, look: 'place' };
    this.show({ name: 'search', back: { name: 'session', id: view.id, ...(at ? { at } : {}) } });
  }

  /** The conversation that showFirst will show: its transcript is read while the list is. */
  get first(): string | undefined {
    this.#last ??= lastShown();
    return this.#last.id;
  }

  /** Shows the view that was shown when the page was closed. It is called once, after the list of conversations was read. */
  showFirst(): void {
    const { sessions } = this.#conversations;
    const { id: last, spared } = this.#last ?? {};
    const left = sessions.get(spared ?? '');
    if (left) this.#toasts.show({ text: t('session.spared', { title: titleOf(left) }), tone: 'danger' });
    const listed = (id: string) => sessions.get(id)?.archivedAt === undefined && sessions.has(id);
    if (!last || !listed(last)) return;
    const beside = Panes.kept().filter(listed);
    if (beside.length > 1 && beside.includes(last)) this.panes.restore(beside, last);
    const at = readAt(last);
    this.show({ name: 'session', id: last, ...(at ? { at } : {}) });
  }

  /** Takes a deleted conversation off the screen. */
  leave(id: string): void {
    this.panes.drop(id);
    if (this.view.name === 'search' && this.view.back.name === 'session' && this.view.back.id === id)
      this.view = { name: 'search', back: { name: 'new' } };
    if (localStorage.getItem(lastKey) === id) localStorage.removeItem(lastKey);
  }

  /** Takes the mark of unread entries from a conversation, when the person looks at it. */
  markRead(session: Session): void {
    if (!session.unread || this.#server.readOnly || document.visibilityState === 'hidden') return;
    if (this.#onScreen(session.id)) void this.#conversations.patch(session.id, { unread: false });
  }

  #onScreen(session: string): boolean {
    const shown = this.narrow ? this.current?.id === session : this.panes.shows(session);
    return this.view.name === 'session' && shown;
  }

  /** Reports whether the page has the person's attention and shows a conversation. */
  looksAt(session: string): boolean {
    return document.visibilityState === 'visible' && document.hasFocus() && this.#onScreen(session);
  }

  /** Marks all conversations read that the person looks at. */
  markShownRead(): void {
    for (const pane of this.panes.list) {
      const session = this.#conversations.sessions.get(pane.session);
      if (session) this.markRead(session);
    }
  }
}
