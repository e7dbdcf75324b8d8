import type { Client } from '../api/client';
import { unlimited } from '../api/limit';
import { here } from '../api/places';
import type { ExportFormat, Session } from '../api/records';
import { saveFile } from '../shell/save';
import { copyText, saveExport, surface } from '../shell/wails';
import { t } from '../strings/t';
import { titleOf } from '../ui/format';
import type { Conversations } from './conversations.svelte';
import type { Navigation } from './navigation.svelte';
import type { Toasts } from './toasts.svelte';

/** After so many milliseconds a toast tells that a conversation is still being made. */
const slowAfter = 1_000;

/** How a conversation begins. */
export interface Begin {
  agent: string;
  cwd: string;
  message: string;
  /** The ids of the files that go with the message. */
  attachments?: readonly string[];
  place?: string;
  directories?: readonly string[];
  /** In a new worktree. */
  worktree?: boolean;
  /** The branch or commit that the worktree begins with; undefined for what is checked out. */
  base?: string | undefined;
}

/** How conversations begin and end: new, forked, continued with another agent, archived, deleted, exported. */
export class Lifecycle {
  /** The forks and continuations under way. */
  readonly #beginning = new Set<string>();
  readonly #client: Client;
  readonly #toasts: Toasts;
  readonly #conversations: Conversations;
  readonly #navigation: Navigation;

  constructor(client: Client, toasts: Toasts, conversations: Conversations, navigation: Navigation) {
    this.#client = client;
    this.#toasts = toasts;
    this.#conversations = conversations;
    this.#navigation = navigation;
  }

  /** Begins a conversation with its first message. Failures are thrown, and leave nothing. */
  async create({
    place = here,
    directories = [],
    worktree,
    base,
    attachments = [],
    ...rest
  }: Begin): Promise<Session> {
    const session = await this.#client.createSession({
      ...rest,
      ...(place === here ? {} : { place }),
      ...(directories.length > 0 ? { directories: [...directories] } : {}),
      ...(worktree ? { worktree, ...(base === undefined ? {} : { base }) } : {}),
      ...(attachments.length > 0 ? { attachments: attachments.map((id) => ({ id })) } : {}),
    });
    this.#conversations.add(session);
    return session;
  }

  /** Archives a conversation, or takes an archived conversation back into the list. */
  async archive(session: Session): Promise<void> {
    const archived = session.archivedAt === undefined;
    if (!(await this.#conversations.patch(session.id, { archived })) || !archived) return;
    this.#toasts.show({
      text: t('sidebar.archived', { title: titleOf(session) }),
      tone: 'info',
      undo: () => void this.#conversations.patch(session.id, { archived: false }),
    });
    this.#navigation.panes.drop(session.id);
    this.#conversations.forgetAway(session.id);
  }

  /** Deletes a conversation, and offers to restore it. The event session.removed takes the conversation off the page. */
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
      undo: () => void this.#restore(session.id, this.#navigation.view.name === 'new'),
    });
  }

  async #restore(id: string, show: boolean): Promise<void> {
    try {
      this.#conversations.add(await this.#client.restoreSession(id));
      if (show) this.#navigation.show({ name: 'session', id });
    } catch (thrown) {
      this.#toasts.fail(thrown);
    }
  }

  /** Begins a new conversation with the entries of session. The session itself does not change. */
  fork(session: Session): Promise<void> {
    return this.#begin(`fork ${session.id}`, t('lifecycle.forking', { title: titleOf(session) }), () =>
      this.#client.forkSession(session.id),
    );
  }

  /** Continues with another agent, in a conversation of its own. The handover stands in the draft of that conversation. */
  continueWith(session: Session, agent: string): Promise<void> {
    return this.#begin(
      `continue ${session.id} ${agent}`,
      t('lifecycle.continuing', { title: titleOf(session) }),
      () => this.#client.continueSession(session.id, agent),
    );
  }

  /**
   * Has the server begin a conversation, which takes long when an agent has to start or a long history is copied. A toast tells that, and
   * offers to cancel. A second call with the same key does nothing while the first is under way.
   */
  async #begin(key: string, telling: string, call: () => Promise<Session>): Promise<void> {
    if (this.#beginning.has(key)) return;
    this.#beginning.add(key);
    const { view } = this.#navigation;
    let toast = 0;
    let cancelled = false;
    const cancel = () => {
      cancelled = true;
      this.#beginning.delete(key);
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
        await this.#client.deleteSession(session.id); // the server has made the conversation all the same
        return;
      }
      this.#conversations.add(session);
      if (this.#navigation.view === view) this.#navigation.show({ name: 'session', id: session.id });
    } catch (thrown) {
      this.#toasts.fail(thrown);
    } finally {
      if (!cancelled) this.#beginning.delete(key);
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

  /** Saves a conversation as a file: the window asks for a path, a browser downloads the file. */
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
      // The export takes as long as the conversation is long.
      const { name, content } = await this.#client.exportSession(session.id, format, unlimited());
      saveFile(name, content);
      this.#toasts.show({ text: t('export.done', { name }), tone: 'info' });
    } catch (thrown) {
      this.#toasts.fail(thrown);
    }
  }
}
