import type { RequestOption } from '../api/records';

// Text that somebody decides about must not hide anything: characters that are not seen, or that put others into another order, are
// written by their number.

// Not the one after an emoji: it only says that it is one.
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

/** A line of a file. That it ends as on Windows is shown as a sign, and hides nothing. */
export function revealLine(text: string): string {
  return text.endsWith('\r') ? `${reveal(text.slice(0, -1))}␍` : reveal(text);
}

export function lineHides(text: string): boolean {
  return hides(text.replace(/\r$/, ''));
}

/** The name of an option for people; an option that an earlier version stored has no label. */
export function shownName({ label, name, id }: RequestOption): string {
  return label ?? (reveal(name).trim() || reveal(id));
}
