import { conversations, toasts } from '../state/state';
import '../strings/keyboard';
import { t } from '../strings/t';
import { keysOf } from '../ui/keys';

// Prompts that were put away for later. They belong to no session, so a prompt from one session can be sent in another.

// Each prompt has a key of its own in the storage, and later prompts have later keys, so that two windows cannot overwrite each other's
// prompts.
const root = 'deskhand.stash';
const most = 20;

interface Put {
  key: string;
  text: string;
}

interface Field {
  read: () => string;
  write: (text: string) => void;
}

/** Restored prompts that are not known to be saved as a draft yet, with the function that ends the wait. */
const waiting = new Map<string, () => void>();

/** Returns the prompts in the old format, which had all prompts under one key. */
function pieces(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(root) ?? '[]');
    return Array.isArray(kept) ? kept.filter((one) => typeof one === 'string') : [];
  } catch {
    return [];
  }
}

function keepPieces(texts: readonly string[]): void {
  if (texts.length === 0) localStorage.removeItem(root);
  else localStorage.setItem(root, JSON.stringify(texts));
}

function keyed(): Put[] {
  const found: Put[] = [];
  for (let at = 0; at < localStorage.length; at++) {
    const key = localStorage.key(at) ?? '';
    const text = key.startsWith(`${root}/`) ? localStorage.getItem(key) : null;
    if (text !== null) found.push({ key, text });
  }
  return found.sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** Stores a prompt. It throws when the storage is full. */
function add(text: string): void {
  const last =
    keyed()
      .at(-1)
      ?.key.slice(root.length + 1, root.length + 10) ?? '';
  const now = Math.max(Date.now(), (Number.parseInt(last, 36) || 0) + 1);
  const [chance = 0] = crypto.getRandomValues(new Uint32Array(1)); // differs from another window's key of the same millisecond
  localStorage.setItem(`${root}/${now.toString(36).padStart(9, '0')}-${chance.toString(36)}`, text);
}

/** Converts the prompts from the old format. Each is removed before it is stored, because there may be no room for both. */
function takeOver(): void {
  for (let before = pieces(); before.length > 0; before = before.slice(1)) {
    try {
      keepPieces(before.slice(1));
      add(before[0] ?? '');
    } catch {
      keepPieces(before);
      return;
    }
  }
}

/** Returns all prompts, the last put away at the end. */
function list(): Put[] {
  try {
    takeOver();
  } catch {
    // The old prompts stay together.
  }
  try {
    return [...pieces().map((text) => ({ key: `${root}#${text}`, text })), ...keyed()];
  } catch {
    return [];
  }
}

export function stashed(): string[] {
  return list().map(({ text }) => text);
}

function remove({ key, text }: Put): void {
  try {
    localStorage.removeItem(key);
    if (key.startsWith(`${root}#`)) keepPieces(pieces().filter((one) => one !== text));
  } catch {
    // The prompt is stored twice now, which is better than lost.
  }
}

/** Puts away the field's text, or restores the last prompt into an empty field. */
export function stash(field: Field | undefined, session: string | undefined): void {
  if (!field || session === undefined) return;
  const text = field.read();
  if (text.trim() === '') bringBack(field, session);
  else putAway(field, text);
}

function putAway(field: Field, text: string): void {
  const all = list();
  const same = all.find((one) => one.text === text && waiting.has(one.key));
  if (same) waiting.get(same.key)?.();
  else {
    // A full stash refuses instead of dropping an older prompt, because the person relies on it.
    if (all.filter(({ key }) => !waiting.has(key)).length >= most)
      return toasts.show({ text: t('keyboard.stash_full', { most }), tone: 'danger' });
    try {
      add(text); // before it is removed from the field, so that it is never lost
    } catch {
      return toasts.show({ text: t('keyboard.stash_no_room'), tone: 'danger' });
    }
  }
  field.write('');
  toasts.show({ text: t('keyboard.stashed', { keys: keysOf('stash') }), tone: 'info' });
}

function bringBack(field: Field, session: string): void {
  const last = list().findLast(({ key }) => !waiting.has(key));
  if (!last) {
    toasts.show({ text: t('keyboard.nothing_stashed'), tone: 'info' });
    return;
  }
  field.write(last.text);
  removeWhenKept(last, field, session);
}

/**
 * Removes a restored prompt from the stash once the server reports it as the session's draft. Until then only the field has it, and the
 * page may end. A draft of the same text from before does not count.
 */
function removeWhenKept(put: Put, field: Field, session: string): void {
  let news = conversations.sessions.get(session)?.draft !== put.text;
  const stop = $effect.root(() => {
    $effect(() => {
      const draft = conversations.sessions.get(session)?.draft;
      if (draft === undefined) end();
      else if (draft !== field.read()) news = true;
      else if (news) {
        remove(put);
        end();
      }
    });
  });
  const end = () => {
    waiting.delete(put.key);
    stop();
  };
  waiting.set(put.key, end);
}

/** For tests, which share a page: forgets everything, as a reload does. */
export function forgetWaiting(): void {
  for (const end of [...waiting.values()]) end();
}
