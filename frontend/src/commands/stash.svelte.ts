import { conversations, toasts } from '../state/state';
import '../strings/keyboard';
import type Composer from '../composer/Composer.svelte';
import { t } from '../strings/t';
import { keysOf } from '../ui/keys';

// Prompts that were put away for later. They belong to no conversation: what was begun here may be said there.

// Each stands under a key of its own, the one that was put away last under the last: two windows that put away at once cannot overwrite
// each other's, as they did when all stood under one.
const root = 'deskhand.stash';
const most = 20;

interface Put {
  key: string;
  text: string;
}

type Field = Pick<Composer, 'read' | 'write'>;

/** What was brought back and is not known to be a draft yet, by key, with what ends the waiting for that. */
const waiting = new Map<string, () => void>();

/** What was kept in one piece, as it was before. */
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

/** Throws where there is no room. */
function add(text: string): void {
  const last =
    keyed()
      .at(-1)
      ?.key.slice(root.length + 1, root.length + 10) ?? '';
  const now = Math.max(Date.now(), (Number.parseInt(last, 36) || 0) + 1);
  const [chance = 0] = crypto.getRandomValues(new Uint32Array(1)); // for another window's of the same moment
  localStorage.setItem(`${root}/${now.toString(36).padStart(9, '0')}-${chance.toString(36)}`, text);
}

/** Gives each of before its own key. Its room is made first: there may be none for it twice. */
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

/** All of them, the one that was put away last at the end. */
function list(): Put[] {
  try {
    takeOver();
  } catch {
    // They stay together.
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
    // It is there twice now, which is better than not at all.
  }
}

/** Puts away what is written, or brings back into an empty field what was put away last. */
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
    // None goes for another one: who put it away counts on it.
    if (all.filter(({ key }) => !waiting.has(key)).length >= most)
      return toasts.show({ text: t('keyboard.stash_full', { most }), tone: 'danger' });
    try {
      add(text); // before it is taken out of the field: it must not be lost between them
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
 * The field alone loses it when the page ends now. It stays put away until the server tells of a draft as it stands in the field; what
 * was the draft before does not count, were it the same by chance.
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

/** For tests, which share a page: as though it were loaded anew. */
export function forgetWaiting(): void {
  for (const end of [...waiting.values()]) end();
}
