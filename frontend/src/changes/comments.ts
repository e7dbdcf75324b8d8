import { toasts } from '../state/state';
import '../strings/changes';
import { t } from '../strings/t';

// A person's comments on changed lines. They are kept until all are sent as one message.

export interface Comment {
  id: string;
  path: string;
  /** old: the line is of the file before the change. */
  side: 'old' | 'new';
  line: number;
  op: ' ' | '+' | '-';
  /** The text of the line. */
  code: string;
  text: string;
}

export interface Notes {
  comments: readonly Comment[];
  /** The comment that is being written. */
  draft?: Comment | undefined;
}

// Each comment has a key of its own in the storage, so that two windows cannot overwrite each other's comments and no number of sessions is
// too many.
const root = 'deskhand.comments';

function keyOf(session: string, id = ''): string {
  return `${root}/${encodeURIComponent(session)}/${encodeURIComponent(id)}`;
}

type Stored = Comment & { draft?: boolean };

/** This window's notes of a session, and the stored comments that it knows, by id. */
interface Seen {
  notes: Notes;
  known: Map<string, string>;
  /** The id of the comment that this window stored as its draft. */
  draft: string | undefined;
  /** Some comments are still in the old format, which had all sessions under one key. */
  piece?: boolean;
}

const seenOf = new Map<string, Seen>();
const followers = new Map<string, Set<(notes: Notes) => void>>();
/** The person has been told that the storage is full. */
let told = false;

function isComment(value: unknown): value is Stored {
  if (typeof value !== 'object' || value === null) return false;
  const { id, path, code, text, line } = value as Record<string, unknown>;
  return [id, path, code, text].every((one) => typeof one === 'string') && typeof line === 'number';
}

/** Returns the content of a comment, for comparison. */
const mark = ({ id, path, side, line, op, code, text }: Comment) =>
  JSON.stringify({ id, path, side, line, op, code, text });

const isBlank = ({ text }: Comment) => text.trim() === '';

function byPlace(a: Comment, b: Comment): number {
  return (a.path < b.path ? -1 : a.path > b.path ? 1 : 0) || a.line - b.line || (a.id < b.id ? -1 : 1);
}

function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return undefined;
  }
}

/** Returns the stored comments of a session by id; undefined when the storage cannot be read. */
function stored(session: string): Map<string, Stored> | undefined {
  const found = new Map<string, Stored>();
  const prefix = keyOf(session);
  try {
    for (let at = 0; at < localStorage.length; at++) {
      const key = localStorage.key(at);
      if (!key?.startsWith(prefix)) continue;
      const comment = parsed(localStorage.getItem(key));
      if (isComment(comment)) found.set(comment.id, comment);
    }
  } catch {
    return undefined;
  }
  return found;
}

const plain = (comment: Stored): Comment => JSON.parse(mark(comment)) as Comment;

/** Merges the changes of other windows. Comments that this window has not stored yet stay. */
function together(session: string, seen: Seen): Notes {
  const there = stored(session);
  if (!there) return seen.notes;
  const { notes, known } = seen;
  const now = (mine: Comment): Comment | undefined => {
    if (known.get(mine.id) !== mark(mine)) return mine;
    const theirs = there.get(mine.id);
    if (!theirs) known.delete(mine.id);
    if (!theirs || mark(theirs) === mark(mine)) return theirs && mine;
    known.set(mine.id, mark(theirs));
    return plain(theirs);
  };
  const had = new Set([...notes.comments, ...(notes.draft ? [notes.draft] : [])].map(({ id }) => id));
  const draft = notes.draft && now(notes.draft);
  const comments = notes.comments.flatMap((one) => now(one) ?? []);
  // Another window's draft is an ordinary comment here, because a field for it would take the focus.
  for (const theirs of [...there.values()].filter(({ id }) => !had.has(id)).sort(byPlace)) {
    known.set(theirs.id, mark(theirs));
    comments.push(plain(theirs));
  }
  const same =
    comments.length === notes.comments.length && comments.every((one, at) => one === notes.comments[at]);
  if (!same || draft !== notes.draft) seen.notes = { comments, draft };
  return seen.notes;
}

/** Returns the comments in the old format. */
function pieces(): Record<string, { comments?: unknown; draft?: unknown } | undefined> {
  try {
    const kept = parsed(localStorage.getItem(root));
    return typeof kept === 'object' && kept !== null && !Array.isArray(kept) ? { ...kept } : {};
  } catch {
    return {};
  }
}

/** Converts a session's comments from the old format. */
function takeOver(session: string, seen: Seen): void {
  const piece = pieces()[session];
  if (!piece) return;
  seen.piece = true;
  const { comments, draft } = seen.notes;
  const known = new Set([...comments, ...(draft ? [draft] : [])].map(({ id }) => id));
  const fresh = (one: unknown): one is Comment => isComment(one) && !known.has(one.id);
  const list: unknown[] = Array.isArray(piece.comments) ? piece.comments : [];
  const written = fresh(piece.draft) ? piece.draft : undefined;
  keepNotes(session, {
    comments: [...comments, ...list.filter(fresh), ...(draft && written ? [written] : [])],
    draft: draft ?? written,
  });
}

function forgetPiece(session: string): void {
  const all = pieces();
  if (!(session in all)) return;
  const { [session]: _, ...others } = all;
  if (Object.keys(others).length === 0) localStorage.removeItem(root);
  else localStorage.setItem(root, JSON.stringify(others));
}

export function keptNotes(session: string): Notes {
  let seen = seenOf.get(session);
  if (!seen) {
    const there = [...(stored(session)?.values() ?? [])].sort(byPlace);
    const draft = there.find((one) => one.draft);
    seen = {
      notes: { comments: there.filter((one) => one !== draft).map(plain), draft: draft && plain(draft) },
      known: new Map(there.map((one) => [one.id, mark(one)])),
      draft: draft?.id,
    };
    seenOf.set(session, seen);
    takeOver(session, seen);
  }
  return together(session, seen);
}

/** Removes comments that this window has deleted, unless another window has changed them. */
function remove(
  session: string,
  seen: Seen,
  kept: ReadonlySet<string>,
  there: ReadonlyMap<string, Stored>,
): void {
  for (const [id, was] of seen.known) {
    if (kept.has(id)) continue;
    const theirs = there.get(id);
    if (theirs && mark(theirs) === was) localStorage.removeItem(keyOf(session, id));
    seen.known.delete(id);
  }
}

/** Stores a comment. A version that another window has changed meanwhile becomes a second comment. */
function store(session: string, seen: Seen, one: Stored, there: ReadonlyMap<string, Stored>): void {
  const { id, draft = false } = one;
  const was = seen.known.get(id);
  const theirs = there.get(id);
  let now: Comment = one;
  if (was === mark(one)) {
    // This window has not changed the text. Another window may have changed or sent it.
    if (!theirs || draft === (seen.draft === id)) return;
    now = theirs;
  } else if (theirs && mark(theirs) !== was && mark(theirs) !== mark(one)) {
    let other = `${id}~`;
    while (there.has(other)) other += '~';
    localStorage.setItem(keyOf(session, other), mark({ ...theirs, id: other }));
  }
  localStorage.setItem(keyOf(session, id), JSON.stringify({ ...plain(now), ...(draft && { draft }) }));
  if (now === one) seen.known.set(id, mark(one));
}

export function keepNotes(session: string, notes: Notes): void {
  const seen: Seen = seenOf.get(session) ?? { notes, known: new Map(), draft: undefined };
  seenOf.set(session, seen);
  seen.notes = notes;
  const mine: Stored[] = [...notes.comments, ...(notes.draft ? [{ ...notes.draft, draft: true }] : [])];
  const written = mine.filter((one) => !isBlank(one));
  const there = stored(session) ?? new Map<string, Stored>();
  let full = false;
  const attempt = (what: () => void) => {
    try {
      what();
    } catch {
      full = true; // the comment lasts as long as the page, and the next save tries again
    }
  };
  attempt(() => remove(session, seen, new Set(written.map(({ id }) => id)), there));
  for (const one of written) attempt(() => store(session, seen, one, there));
  seen.draft = notes.draft?.id;
  if (seen.piece && !full)
    attempt(() => {
      forgetPiece(session);
      seen.piece = false;
    });
  if (full && !told) toasts.show({ text: t('changes.comments.no_room'), tone: 'danger' });
  told = full;
  const now = together(session, seen);
  if (now !== notes) for (const take of followers.get(session) ?? []) take(now);
}

/** Calls take when another window has changed the notes. The returned function ends that. */
export function followNotes(session: string, take: (notes: Notes) => void): () => void {
  const prefix = keyOf(session);
  const look = () => {
    const before = seenOf.get(session)?.notes;
    const now = keptNotes(session);
    if (now !== before) take(now);
  };
  const heard = ({ key, storageArea }: StorageEvent) => {
    if (storageArea !== localStorage || (key !== null && !key.startsWith(prefix))) return;
    // The browser cleared the storage, which is no deletion by a person.
    if (key === null) seenOf.get(session)?.known.clear();
    look();
  };
  const all = followers.get(session) ?? new Set();
  followers.set(session, all.add(take));
  window.addEventListener('storage', heard);
  look();
  return () => {
    window.removeEventListener('storage', heard);
    all.delete(take);
    if (all.size === 0) followers.delete(session);
  };
}

/** For tests, which share a page: forgets everything, as a reload does. */
export function forgetNotes(): void {
  seenOf.clear();
  followers.clear();
  told = false;
}

/** Returns a fence that is longer than any run of backticks in the text. */
function fence(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  return '`'.repeat(longest + 1);
}

/** Returns a file name as inline code, whatever characters it has. */
function named(path: string): string {
  const shown = path.replace(/[\r\n]+/g, ' ');
  if (!shown.includes('`')) return `\`${shown}\``;
  const marks = fence(shown);
  return `${marks} ${shown} ${marks}`;
}

export interface Words {
  intro: string;
  /** Returns the text that says where a comment belongs. */
  at: (path: string, line: number, removed: boolean) => string;
}

/** Returns all comments as one message, by file and line. */
export function messageOf(comments: readonly Comment[], words: Words): string {
  const sorted = [...comments].sort(byPlace);
  const parts = sorted.map(({ path, side, line, op, code, text }) => {
    const marks = fence(code);
    const where = words.at(named(path), line, side === 'old');
    return `${where}\n\n${marks}diff\n${op}${code.replace(/\r$/, '')}\n${marks}\n\n${text.trim()}`;
  });
  return [words.intro, ...parts].join('\n\n');
}
