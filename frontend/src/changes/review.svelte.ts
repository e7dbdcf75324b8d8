import { asApiError, type ApiError } from '../api/errors';
import { unlimited } from '../api/limit';
import { client, conversations, server, toasts } from '../state/state';
import { lookup, t, tn } from '../strings/t';
import { errorText } from '../ui/format';
import { store } from '../ui/storage';
import type {
  ChangedFile,
  ChangedTurn,
  Changes,
  FileDiff,
  Hunk,
  LastRestoration,
  Restored,
} from '../api/records';
import { keepNotes, keptNotes, messageOf, type Comment } from './comments';
import { split, unified, type Row } from './hunks';
import { inOrder } from './tree';

// A person's review of a session's changes: the scope, the position, and the comments. The review outlives the tab.

const splitKey = 'deskhand.changes.split';

/** The compared states: the begin and the end of a turn, or the begin of the session and the present. */
type Scope = { turn: string } | { since: 'start' };

/** The person's position in a file. */
interface Spot {
  hunk: number;
  row: number;
}

const top: Spot = { hunk: 0, row: 0 };

/** Returns the text of a reason code. */
export function reasonText(code: string, params: Readonly<Record<string, string>> = {}): string {
  return lookup(`error.${code}`, params) ?? t('changes.unknown', { code });
}

/** Returns the text that says why some of the changes may be another's work. */
export function mixedText(reason: string | undefined): string {
  return reason ? reasonText(reason) : t('changes.mixed');
}

export class Review {
  readonly session: string;
  list = $state.raw<Changes | undefined>();
  error = $state.raw<ApiError | undefined>();
  /** The shown file, its differences, and the error where there are none. */
  path = $state.raw<string | undefined>();
  file = $state.raw<FileDiff | undefined>();
  fileError = $state.raw<ApiError | undefined>();
  spot = $state.raw<Spot>(top);
  /** Counts the requests to move the focus to the position. */
  focused = $state(0);
  split = $state(localStorage.getItem(splitKey) === 'yes');
  /** There is room for two columns. */
  wide = $state(true);
  /** What git says is shown, whoever has changed it, and not what turns have changed. */
  git = $state<'uncommitted' | 'base'>();
  /** A restoration runs. */
  busy = $state(false);
  /** The last restoration, which can be undone. */
  last = $state.raw<{ id: string; text: string } | undefined>();
  comments = $state.raw<readonly Comment[]>([]);
  draft = $state.raw<Comment | undefined>();
  /** The comment before it was opened for editing. */
  #was: Comment | undefined;

  /** The chosen scope of the shown list; undefined for the newest turn. */
  #shown = $state.raw<Scope | undefined>();
  /** The scope that was chosen last. load shows it, or drops it after an error. */
  #wanted: Scope | undefined;
  /** The scope whose load failed, for another try. */
  #failed: { scope: Scope | undefined } | undefined;
  /** The person is in the middle of the review, so the list stays even when a turn ends. */
  #held = $state(false);
  /** Counts openings, of the shown file too, and begun comments. An older answer then does not move the person. */
  #opened = 0;
  #listing: AbortController | undefined;
  #reading: AbortController | undefined;
  /** Loads under way. */
  #asking = 0;
  /** The running calls that mark hunks as kept. Loads wait for them, because an earlier answer would lack the marks. */
  #keeping: Promise<unknown> = Promise.resolve();

  constructor(session: string) {
    this.session = session;
    const notes = keptNotes(session);
    this.comments = notes.comments;
    this.draft = notes.draft;
  }

  // These values are not $derived, because a derived value ends with the component that read it first.

  /** The files in review order. */
  files = $state.raw<readonly ChangedFile[]>([]);
  /** The newest first. */
  turns = $state.raw<readonly ChangedTurn[]>([]);

  get parted(): boolean {
    return this.split && this.wide;
  }

  get hunks(): readonly Hunk[] {
    return this.file?.hunks ?? [];
  }

  get current(): ChangedFile | undefined {
    return this.files.find((file) => file.path === this.path);
  }

  get sum(): { files: number; added: number; removed: number; kept: number; hunks: number } {
    const sum = { files: 0, added: 0, removed: 0, kept: 0, hunks: 0 };
    for (const file of this.files) {
      sum.files++;
      sum.added += file.added;
      sum.removed += file.removed;
      sum.kept += file.kept;
      sum.hunks += file.hunks;
    }
    return sum;
  }

  get fromStart(): boolean {
    return this.#shown !== undefined && 'since' in this.#shown;
  }

  get turn(): ChangedTurn | undefined {
    return this.fromStart ? undefined : this.turns.find((one) => one.id === this.list?.turn);
  }

  /** A later turn with changes, which is not shown because the person still reviews an earlier turn. */
  get newer(): ChangedTurn | undefined {
    const newest = this.turns.find((one) => one.files > 0);
    return this.#shown === undefined && newest && newest.id !== this.list?.turn ? newest : undefined;
  }

  /** The scope for the server's calls: the shown scope, even while another is being loaded. */
  get #scope(): Scope | undefined {
    if (this.#shown) return this.#shown;
    const turn = this.list?.turn;
    return turn ? { turn } : undefined;
  }

  rows(hunk: Hunk): Row[] {
    return this.parted ? split(hunk) : unified(hunk);
  }

  // Loading.

  /** Loads the list and the shown file, which stays the same where it still exists. */
  async load(): Promise<void> {
    this.#listing?.abort();
    const ours = (this.#listing = new AbortController());
    this.#asking++;
    try {
      await this.#list(ours);
    } finally {
      this.#asking--;
    }
  }

  #changes(query: Scope | undefined, signal: AbortSignal): Promise<Changes> {
    return client.call('GET /client/sessions/{id}/changes', {
      path: { id: this.session },
      ...(query ? { query } : {}),
      signal,
    });
  }

  async #list(ours: AbortController): Promise<void> {
    await this.#keeping;
    if (ours.signal.aborted) return;
    const wanted = this.#wanted;
    const asked = wanted ?? (this.#held ? this.#scope : undefined);
    try {
      let list = await this.#changes(asked, ours.signal);
      // A newest turn without changes gives way to the last turn with changes, unless the person chose it.
      const better = asked === undefined && list.state === 'ready' && list.files.length === 0;
      const last = better ? newestFirst(list.turns).find((one) => one.files > 0) : undefined;
      if (last) list = await this.#changes({ turn: last.id }, ours.signal);
      if (ours.signal.aborted) return;
      if (this.#shown !== wanted) this.file = undefined; // its hunks belong to the earlier scope
      this.#shown = wanted;
      this.#put(list);
      this.error = undefined;
    } catch (thrown) {
      if (ours.signal.aborted) return;
      this.error = asApiError(thrown);
      this.#failed = { scope: wanted };
      if (this.list) this.#wanted = this.#shown;
      return;
    }
    await this.#read('here');
  }

  /** Repeats the load that failed. */
  again(): Promise<void> {
    return this.#failed ? this.choose(this.#failed.scope) : this.load();
  }

  #put(list: Changes): void {
    const there = list.files.some((file) => file.path === this.path);
    this.list = list;
    this.files = inOrder(list.files);
    this.turns = newestFirst(list.turns);
    const back = list.restoration;
    if (back?.id !== this.last?.id) this.last = back && { id: back.id, text: lastText(back) };
    if (there) return;
    this.path = this.files[0]?.path;
    this.file = undefined;
    this.spot = top;
  }

  /** Reads the shown file. With 'here' the position is the person's position when the answer comes. */
  async #read(place: 'first' | 'last' | 'here'): Promise<void> {
    this.#reading?.abort();
    const { path } = this;
    if (path === undefined) {
      this.file = undefined;
      return;
    }
    const ours = (this.#reading = new AbortController());
    this.#asking++;
    try {
      const file = await client.call('GET /client/sessions/{id}/changes/file', {
        path: { id: this.session },
        query: { ...this.#scope, path },
        signal: ours.signal,
      });
      if (ours.signal.aborted) return;
      const spot = this.#spotOf(file, place === 'here' ? this.#placeOf(this.spot) : place);
      this.file = file;
      this.fileError = undefined;
      this.spot = spot;
    } catch (thrown) {
      if (ours.signal.aborted) return;
      this.file = undefined;
      this.fileError = asApiError(thrown);
    } finally {
      this.#asking--;
    }
  }

  #placeOf({ hunk, row }: Spot): { id: string; row: number } | undefined {
    const id = this.hunks[hunk]?.id;
    return id === undefined ? undefined : { id, row };
  }

  #spotOf(file: FileDiff, place: { id: string; row: number } | 'first' | 'last' | undefined): Spot {
    if (place === undefined || place === 'first' || place === 'last') {
      const hunk = place === 'last' ? Math.max(0, file.hunks.length - 1) : 0;
      return { hunk, row: this.#begin(file.hunks[hunk]) };
    }
    const hunk = file.hunks.findIndex((one) => one.id === place.id);
    return hunk < 0 ? { hunk: 0, row: this.#begin(file.hunks[0]) } : { hunk, row: place.row };
  }

  /** Returns the first changed row of a hunk. */
  #begin(hunk: Hunk | undefined): number {
    if (!hunk) return 0;
    return Math.max(
      0,
      this.rows(hunk).findIndex((row) => row.op !== ' '),
    );
  }

  stop(): void {
    this.#listing?.abort();
    this.#reading?.abort();
  }

  // The scope.

  /** Shows the changes of a turn, since the start, or (without a scope) of the newest turn. */
  async choose(scope: Scope | undefined): Promise<void> {
    const held = this.#held;
    this.#wanted = scope;
    this.#held = false;
    await this.load();
    if (this.error) this.#held = held;
  }

  /** Shows a turn, or a file of a turn, for a link elsewhere on the page. */
  async show(turn: string | undefined, path: string | undefined): Promise<void> {
    const newest = this.turns[0]?.id;
    if (turn !== undefined && turn !== this.list?.turn)
      await this.choose(turn === newest ? undefined : { turn });
    else if (!this.list) await this.load();
    if (path === undefined) return;
    const found = this.files.find((file) => file.path === path || path.endsWith(`/${file.path}`));
    if (found) await this.open(found.path);
  }

  async open(path: string, place: 'first' | 'last' = 'first'): Promise<void> {
    this.#held = true;
    this.#opened++;
    if (this.path !== path) {
      this.path = path;
      this.file = undefined;
      this.fileError = undefined;
    } else if (this.file) {
      this.spot = this.#spotOf(this.file, place);
      return;
    }
    await this.#read(place);
  }

  setSplit(on: boolean): void {
    this.split = on;
    store(splitKey, on ? 'yes' : 'no');
    this.spot = { hunk: this.spot.hunk, row: this.#begin(this.hunks[this.spot.hunk]) };
  }

  // Moving.

  at(spot: Spot, focus = true): void {
    this.#held = true;
    this.spot = spot;
    if (focus) this.focused++;
  }

  /** Moves to the next or previous hunk, also into the next file. It returns false at the end. */
  async step(by: 1 | -1): Promise<boolean> {
    const hunk = this.spot.hunk + by;
    if (this.hunks[hunk]) {
      this.at({ hunk, row: this.#begin(this.hunks[hunk]) });
      return true;
    }
    const at = this.files.findIndex((file) => file.path === this.path);
    const next = this.files[at + by];
    if (!next) return false;
    await this.open(next.path, by > 0 ? 'first' : 'last');
    this.focused++;
    return true;
  }

  /** Moves a line up or down. */
  line(by: 1 | -1): void {
    const { hunk, row } = this.spot;
    const here = this.hunks[hunk];
    if (!here) return;
    const next = row + by;
    if (next >= 0 && next < this.rows(here).length) {
      this.at({ hunk, row: next });
      return;
    }
    const other = this.hunks[hunk + by];
    if (other) this.at({ hunk: hunk + by, row: by > 0 ? 0 : this.rows(other).length - 1 });
  }

  edge(end: boolean): void {
    const hunk = end ? this.hunks.length - 1 : 0;
    const there = this.hunks[hunk];
    if (there) this.at({ hunk, row: end ? this.rows(there).length - 1 : 0 });
  }

  /** Moves to the next open hunk; stays where there is none. */
  async #on(): Promise<void> {
    const open = (hunk: Hunk) => !hunk.kept && hunk.reverted !== true;
    const hunk = this.hunks.findIndex((one, at) => at > this.spot.hunk && open(one));
    if (hunk >= 0) {
      this.at({ hunk, row: this.#begin(this.hunks[hunk]) });
      return;
    }
    const at = this.files.findIndex((file) => file.path === this.path);
    const order = [...this.files.slice(at + 1), ...this.files.slice(0, Math.max(0, at))];
    const next = order.find((file) => file.kept < file.hunks && file.now === 'same');
    if (!next) {
      this.focused++;
      return;
    }
    await this.open(next.path);
    const first = this.hunks.findIndex(open);
    this.at({ hunk: Math.max(0, first), row: this.#begin(this.hunks[Math.max(0, first)]) });
  }

  // Keeping and reverting.

  /** Marks the hunk as kept or removes the mark, and moves on. */
  async keepHunk(at = this.spot.hunk): Promise<void> {
    const hunk = this.hunks[at];
    if (!hunk) {
      // Without hunks the key would apply to the whole file, which the person did not mean.
      if (this.file && this.current) await this.keepFile(this.current);
      return;
    }
    const { path } = this;
    if (path === undefined || server.readOnly) return;
    const kept = !hunk.kept;
    const opened = this.#opened;
    if (await this.#keep(path, hunk.id, kept)) {
      toasts.announce(kept ? t('changes.kept.told') : t('changes.unkept.told'));
      if (kept && opened === this.#opened && at === this.spot.hunk) await this.#on();
    }
  }

  async keepFile(file: ChangedFile): Promise<void> {
    if (server.readOnly) return;
    const kept = file.kept < Math.max(1, file.hunks);
    if (await this.#keep(file.path, '', kept))
      toasts.announce(kept ? t('changes.kept.file.told', { path: file.path }) : t('changes.unkept.told'));
  }

  async #keep(path: string, hunk: string, kept: boolean): Promise<boolean> {
    this.#held = true;
    const before = { files: this.files, file: this.file };
    let again = this.#asking > 0;
    this.stop();
    this.#mark(path, hunk, kept);
    const sent = client.call('POST /client/sessions/{id}/changes/keep', {
      path: { id: this.session },
      body: { ...this.#scope, hunks: [{ path, hunk }], kept },
    });
    this.#keeping = Promise.allSettled([this.#keeping, sent]);
    try {
      await sent;
      return true;
    } catch (thrown) {
      this.files = before.files;
      if (this.path === path) this.file = before.file;
      toasts.fail(thrown);
      again = true; // the answer of the running load lacks this mark
      return false;
    } finally {
      if (again) void this.load();
    }
  }

  /** Shows the mark before the server's answer. */
  #mark(path: string, id: string, kept: boolean): void {
    this.files = this.files.map((file) => {
      if (file.path !== path) return file;
      const all = Math.max(1, file.hunks);
      return { ...file, kept: id === '' ? (kept ? all : 0) : file.kept + (kept ? 1 : -1) };
    });
    if (this.file?.path === path) {
      const hunks = this.file.hunks.map((one) => (id === '' || one.id === id ? { ...one, kept } : one));
      this.file = { ...this.file, hunks };
    }
  }

  /** A turn runs in the session, so nothing can be restored. */
  get running(): boolean {
    return conversations.sessions.get(this.session)?.turn !== undefined;
  }

  async revertHunk(at = this.spot.hunk): Promise<void> {
    const hunk = this.hunks[at];
    const { path } = this;
    if (!hunk) {
      if (this.file && this.current) await this.revertFile(this.current);
      return;
    }
    if (path === undefined || hunk.reverted === true) return;
    if (!hunk.revertable) {
      toasts.show({ text: t('changes.unrevertable', { path }), tone: 'danger' });
      return;
    }
    const opened = this.#opened;
    const done = await this.#revert(
      { hunks: [{ path, hunk: hunk.id }] },
      t('changes.reverted.hunk', { path }),
    );
    if (done && opened === this.#opened && at === this.spot.hunk) await this.#on();
  }

  async revertFile(file: ChangedFile): Promise<void> {
    await this.#revert({ paths: [file.path] }, t('changes.reverted.file', { path: file.path }));
  }

  /** Reverts hunks or files. It reports whether that was done, and shows an error. */
  async #revert(
    what: { hunks: { path: string; hunk: string }[] } | { paths: string[] },
    text: string,
  ): Promise<boolean> {
    if (this.busy || server.readOnly) return false;
    if (this.running) {
      toasts.show({ text: reasonText('changes.turn_running'), tone: 'danger' });
      return false;
    }
    this.#held = true;
    this.busy = true;
    let done = false;
    try {
      const restored = await client.call('POST /client/sessions/{id}/changes/revert', {
        path: { id: this.session },
        body: { ...this.#scope, ...what },
        signal: unlimited(),
      });
      this.done(restored, text);
      done = true;
    } catch (thrown) {
      toasts.fail(thrown);
    }
    // Until the new list has come, a second press would revert the same hunk again.
    await this.load().finally(() => (this.busy = false));
    return done;
  }

  /** Reports a restoration with a way to undo it. known are the paths that the person knows to be left alone. */
  done(restored: Restored, text: string, known: readonly string[] = []): void {
    const left = restored.files.filter(
      ({ path, outcome }) => outcome === 'conflict' && !known.includes(path),
    );
    const back = restored.files.some(({ outcome }) => outcome === 'restored' || outcome === 'removed');
    const alone = tellLeft(left);
    if (!back) {
      if (!alone && restored.files.length > 0) toasts.show({ text: t('changes.same'), tone: 'info' });
      return;
    }
    const { id } = restored;
    this.last = { id, text };
    toasts.announce(text);
    if (!alone) toasts.show({ text, tone: 'info', undo: () => void this.takeBack(id) });
  }

  /** Undoes a restoration. */
  async takeBack(id: string): Promise<void> {
    if (this.last?.id === id) this.last = undefined;
    try {
      const { files } = await client.call(
        'POST /client/sessions/{id}/changes/restorations/{restoration}/undo',
        {
          path: { id: this.session, restoration: id },
          signal: unlimited(),
        },
      );
      const left = files.filter(({ outcome }) => outcome === 'conflict');
      if (!tellLeft(left)) toasts.announce(t('changes.taken_back'));
    } catch (thrown) {
      toasts.show({ text: errorText(thrown), tone: 'danger' });
    }
    await this.load();
  }

  // Comments.

  #keepNotes(): void {
    keepNotes(this.session, { comments: this.comments, draft: this.draft });
  }

  /** Begins a comment at the current line, or continues the comment that is there. */
  comment(spot = this.spot): void {
    const { path } = this;
    const hunk = this.hunks[spot.hunk];
    const row = hunk && this.rows(hunk)[spot.row];
    const cell = row?.new ?? row?.old;
    if (path === undefined || !row || !cell || server.readOnly) return;
    this.#opened++;
    this.at(spot, false);
    const side = row.new ? 'new' : 'old';
    const written = this.comments.find(
      (one) => one.path === path && one.side === side && one.line === cell.number && one.code === cell.text,
    );
    if (this.draft && this.draft.text.trim() !== '') this.saveDraft();
    if (written) this.comments = this.comments.filter((one) => one !== written);
    this.#was = written;
    this.draft = written ?? {
      id: crypto.randomUUID(),
      path,
      side,
      line: cell.number,
      op: row.op === '±' ? '+' : row.op,
      code: cell.text,
      text: '',
    };
    this.#keepNotes();
  }

  write(text: string): void {
    if (!this.draft) return;
    this.draft = { ...this.draft, text };
    this.#keepNotes();
  }

  saveDraft(): void {
    const { draft } = this;
    if (!draft) return;
    if (draft.text.trim() !== '') this.comments = [...this.comments, draft];
    this.draft = this.#was = undefined;
    this.#keepNotes();
  }

  /** Discards the draft. A comment that was opened again keeps its earlier text. */
  dropDraft(): void {
    const { draft } = this;
    const was = this.#was?.id === draft?.id ? this.#was : undefined;
    this.draft = this.#was = undefined;
    if (was) this.#add(was);
    else if (draft && draft.text.trim() !== '') this.drop(draft);
    else this.#keepNotes();
  }

  edit(comment: Comment): void {
    this.#opened++;
    this.saveDraft();
    this.comments = this.comments.filter((one) => one.id !== comment.id);
    this.draft = this.#was = comment;
    this.#keepNotes();
  }

  #add(comment: Comment): void {
    this.comments = [...this.comments, comment];
    this.#keepNotes();
  }

  drop(comment: Comment): void {
    this.comments = this.comments.filter((one) => one.id !== comment.id);
    this.#keepNotes();
    toasts.show({
      text: t('changes.comment.dropped'),
      tone: 'info',
      undo: () => reviewOf(this.session).#add(comment), // this review may have been dropped meanwhile
    });
  }

  /** Sends all comments as one message, which waits while a turn runs. After an error the comments stay. */
  async send(): Promise<boolean> {
    this.saveDraft();
    const sent = this.comments;
    if (sent.length === 0) return false;
    const message = messageOf(sent, {
      intro: tn('changes.message', sent.length),
      at: (path, n, removed) =>
        removed ? t('changes.message.removed', { path, n }) : t('changes.message.line', { path, n }),
    });
    this.busy = true;
    try {
      await client.prompt(this.session, message, 'queue');
    } catch (thrown) {
      toasts.fail(thrown);
      return false;
    } finally {
      this.busy = false;
    }
    // Comments written during the call stay.
    this.comments = this.comments.filter((one) => !sent.includes(one));
    this.#keepNotes();
    this.#held = false; // the next turn is the answer to the message
    return true;
  }
}

function newestFirst(turns: readonly ChangedTurn[]): ChangedTurn[] {
  return [...turns].sort((a, b) => (a.at < b.at ? 1 : -1));
}

/** Returns the text about a restoration that another page made, or this page before a reload. */
function lastText({ files, path, turn, unfinished }: LastRestoration): string {
  if (unfinished) return t('changes.unfinished');
  if (turn) return tn('changes.undone.told', files);
  return files === 1 && path ? t('changes.reverted.file', { path }) : tn('changes.reverted.files', files);
}

const reviews = new Map<string, Review>();
/** The number of sessions whose reviews are kept. */
const mostReviews = 8;

export function reviewOf(session: string): Review {
  const review = reviews.get(session) ?? new Review(session);
  reviews.delete(session);
  reviews.set(session, review);
  for (const old of reviews.keys()) {
    if (reviews.size <= mostReviews) break;
    reviews.delete(old);
  }
  return review;
}

/** For tests, which share a page. */
export function forgetReviews(): void {
  reviews.clear();
}

/** Shows the files that were left alone. It reports whether there are any. */
export function tellLeft(left: Restored['files']): boolean {
  const [first] = left;
  if (!first) return false;
  const why = reasonText(first.reason ?? 'changes.conflict');
  toasts.show({ text: tn('changes.left', left.length, { path: first.path, why }), tone: 'danger' });
  return true;
}
