// Mentions: a sign that begins a word, and what is typed after it up to the caret. @ names files, # conversations, $ skills.

export type Sign = '@' | '#' | '$';

export interface Mention {
  sign: Sign;
  /** Where the sign stands. */
  from: number;
  /** What is typed after it. */
  typed: string;
}

export function mentionAt(text: string, caret: number): Mention | undefined {
  const before = text.slice(0, caret);
  const found = /(?:^|[\s([{"'`,;:])([@#$])([^\s@#$]*)$/.exec(before);
  if (!found) return undefined;
  const sign = found[1] as Sign;
  const typed = found[2] ?? '';
  // #12 is an issue, and $5 a sum.
  if (sign !== '@' && /^\d+$/.test(typed)) return undefined;
  return { sign, from: caret - typed.length - 1, typed };
}

/** The text with a name in place of what was typed, and where the caret goes. */
export function named(
  text: string,
  { sign, from, typed }: Mention,
  name: string,
): { text: string; caret: number } {
  const word = `${sign}${name} `;
  const rest = text.slice(from + 1 + typed.length).replace(/^ /, '');
  return { text: text.slice(0, from) + word + rest, caret: from + word.length };
}

/** The text with the path in place of what was typed, and where the caret goes. */
export function mentioned(
  text: string,
  { from, typed }: Omit<Mention, 'sign'>,
  relative: string,
  on: boolean,
): { text: string; caret: number } {
  const rest = text.slice(from + 1 + typed.length);
  // A directory is gone into by its separator; else the word is over.
  const word = `@${relative}${on ? '/' : ' '}`;
  const behind = on ? rest : rest.replace(/^ /, '');
  return { text: text.slice(0, from) + word + behind, caret: from + word.length };
}
