// Mentions of files: an @ that begins a word, and what is typed after it up to the caret.

export interface Mention {
  /** Where the @ stands. */
  from: number;
  /** What is typed after it. */
  typed: string;
}

export function mentionAt(text: string, caret: number): Mention | undefined {
  const before = text.slice(0, caret);
  const found = /(?:^|[\s([{"'`,;:])@([^\s@]*)$/.exec(before);
  if (!found) return undefined;
  const typed = found[1] ?? '';
  return { from: caret - typed.length - 1, typed };
}

/** The text with the path in place of what was typed, and where the caret goes. */
export function mentioned(
  text: string,
  { from, typed }: Mention,
  relative: string,
  on: boolean,
): { text: string; caret: number } {
  const rest = text.slice(from + 1 + typed.length);
  // A directory is gone into by its separator; else the word is over.
  const word = `@${relative}${on ? '/' : ' '}`;
  const behind = on ? rest : rest.replace(/^ /, '');
  return { text: text.slice(0, from) + word + behind, caret: from + word.length };
}
