// A mention: a sign at the begin of a word, and the text from there to the caret. @ names files, # sessions, $ skills.

export type Sign = '@' | '#' | '$';

export interface Mention {
  sign: Sign;
  /** The position of the sign. */
  from: number;
  /** The text after the sign. */
  typed: string;
}

export function mentionAt(text: string, caret: number): Mention | undefined {
  const before = text.slice(0, caret);
  const found = /(?:^|[\s([{"'`,;:])([@#$])([^\s@#$]*)$/.exec(before);
  if (!found) return undefined;
  const sign = found[1] as Sign;
  const typed = found[2] ?? '';
  // #12 is an issue, and $5 an amount.
  if (sign !== '@' && /^\d+$/.test(typed)) return undefined;
  return { sign, from: caret - typed.length - 1, typed };
}

/** Returns the text with the mention replaced by a name, and the new caret position. */
export function named(
  text: string,
  { sign, from, typed }: Mention,
  name: string,
): { text: string; caret: number } {
  const word = `${sign}${name} `;
  const rest = text.slice(from + 1 + typed.length).replace(/^ /, '');
  return { text: text.slice(0, from) + word + rest, caret: from + word.length };
}

/** Returns the text with the mention replaced by a path, and the new caret position. */
export function mentioned(
  text: string,
  { from, typed }: Omit<Mention, 'sign'>,
  relative: string,
  on: boolean,
): { text: string; caret: number } {
  const rest = text.slice(from + 1 + typed.length);
  // A directory keeps its separator, so that the person can go on into the directory. A file ends the word.
  const word = `@${relative}${on ? '/' : ' '}`;
  const behind = on ? rest : rest.replace(/^ /, '');
  return { text: text.slice(0, from) + word + behind, caret: from + word.length };
}
