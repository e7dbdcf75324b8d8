import type { RequestOption } from '../api/records';

// Replaces invisible characters, and characters that reorder text, by their numbers. A text that a person decides on must not hide
// anything.

// U+FE0F only selects the emoji form of the character before, so it stays.
const unseen = /(?![\n\t ]|\ufe0f)[\p{Cc}\p{Cf}\p{Zs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

export function reveal(text: string): string {
  return text.replace(
    unseen,
    (one) => `[U+${(one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
  );
}

export function hides(text: string): boolean {
  return text.search(unseen) >= 0;
}

/** Reveals a line of a file. The carriage return of a CRLF is shown as a sign. */
export function revealLine(text: string): string {
  return text.endsWith('\r') ? `${reveal(text.slice(0, -1))}␍` : reveal(text);
}

export function lineHides(text: string): boolean {
  return hides(text.replace(/\r$/, ''));
}

/** Returns the displayed name of a request's option. Options that an earlier version stored have no label. */
export function shownName({ label, name, id }: RequestOption): string {
  return label ?? (reveal(name).trim() || reveal(id));
}
