// The text of a file, as it stands in a field: a field has one kind of line end, and no mark at the beginning.

export interface Edited {
  text: string;
  /** What begins the file without being text. */
  mark: string;
  end: '\n' | '\r\n';
}

const byteOrder = '\ufeff';

/** A file as text to be changed; undefined where that would lose something, for its lines end in more than one way. */
export function toEdit(content: string): Edited | undefined {
  const mark = content.startsWith(byteOrder) ? byteOrder : '';
  const rest = content.slice(mark.length);
  const windows = rest.includes('\r\n');
  const plain = rest.replaceAll('\r\n', '\n');
  if (plain.includes('\r') || (windows && /(^|[^\r])\n/.test(rest))) return undefined;
  return { text: plain, mark, end: windows ? '\r\n' : '\n' };
}

/** The file again. */
export function toFile({ mark, end }: Pick<Edited, 'mark' | 'end'>, text: string): string {
  return mark + (end === '\n' ? text : text.replaceAll('\n', end));
}

/** How many lines a text has that ends with a line end or not. */
export function linesOf(text: string): number {
  if (text === '') return 1;
  let lines = 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < text.length - 1; at = text.indexOf('\n', at + 1)) lines++;
  return lines;
}

/** What a person has written and not saved. */
export interface Draft {
  /** Of the file that it began with; none where that was not there. */
  version: string;
  text: string;
  mark: string;
  end: '\n' | '\r\n';
}

const prefix = 'deskhand.edit.';
const keyOf = (session: string, path: string) => `${prefix}${session}\n${path}`;

/** What there was no room for: it stays as long as the page does, and is newer than what is stored of the same. */
const unstored = new Map<string, Draft>();

export function draftOf(session: string, path: string): Draft | undefined {
  return unstored.get(keyOf(session, path)) ?? storedDraft(session, path);
}

/** What of it is there after a reload. */
export function storedDraft(session: string, path: string): Draft | undefined {
  try {
    const draft = JSON.parse(localStorage.getItem(keyOf(session, path)) ?? '') as Partial<Draft>;
    return typeof draft.text === 'string' && typeof draft.version === 'string' ? (draft as Draft) : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps what is written, over a reload too; false where there is no room for that. */
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

/** Drops what is kept; with a text only that, for another tab may have kept its own since. */
export function dropDraft(session: string, path: string, text?: string): void {
  const key = keyOf(session, path);
  unstored.delete(key);
  const kept = storedDraft(session, path);
  if (text !== undefined && kept && kept.text !== text) return;
  localStorage.removeItem(key);
}
