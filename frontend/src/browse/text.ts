// Counts the lines of a text, and keeps the edits that a person has not saved.

/** Counts the lines of a text, whether or not the text ends with a line end. */
export function linesOf(text: string): number {
  if (text === '') return 1;
  let lines = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < text.length - 1; at = text.indexOf('\n', at + 1)) lines++;
  return lines;
}

/** An edit that a person has not saved. */
export interface Draft {
  /** The version of the file that the edit began with; empty for a new file. */
  version: string;
  text: string;
  mark: string;
  end: '\n' | '\r\n';
}

const prefix = 'deskhand.edit.';
const keyOf = (session: string, path: string) => `${prefix}${session}\n${path}`;

/** Drafts that did not fit into the storage. They last as long as the page, and are newer than the stored drafts of the same files. */
const unstored = new Map<string, Draft>();

export function draftOf(session: string, path: string): Draft | undefined {
  return unstored.get(keyOf(session, path)) ?? storedDraft(session, path);
}

/** Returns a draft from the storage, which survives a reload. */
export function storedDraft(session: string, path: string): Draft | undefined {
  try {
    const draft = JSON.parse(localStorage.getItem(keyOf(session, path)) ?? '') as Partial<Draft>;
    return typeof draft.text === 'string' && typeof draft.version === 'string' ? (draft as Draft) : undefined;
  } catch {
    return undefined;
  }
}

/** Stores a draft. It returns false when the storage is full, so that the draft would not survive a reload. */
export function keepDraft(session: string, path: string, draft: Draft): boolean {
  const key = keyOf(session, path);
  try {
    localStorage.setItem(key, JSON.stringify(draft));
    unstored.delete(key);
    return true;
  } catch {
    unstored.set(key, draft);
    return false;
  }
}

/** Removes a draft. With a text, only a draft of that text is removed: another tab may have stored its own since. */
export function dropDraft(session: string, path: string, text?: string): void {
  const key = keyOf(session, path);
  unstored.delete(key);
  const kept = storedDraft(session, path);
  if (text !== undefined && kept && kept.text !== text) return;
  localStorage.removeItem(key);
}
