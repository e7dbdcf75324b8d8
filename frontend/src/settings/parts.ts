// The parts of the settings: their order on the screen, and which of them a search finds.

export const parts = [
  'general',
  'appearance',
  'agents',
  'files',
  'permissions',
  'directories',
  'notifications',
  'keyboard',
  'places',
  'discord',
  'access',
  'data',
  'updates',
  'about',
] as const;

export type Part = (typeof parts)[number];

export function isPart(name: string | undefined): name is Part {
  return parts.some((part) => part === name);
}

/** The words of a search, as they are compared. */
export function wordsOf(typed: string): string[] {
  return plain(typed).split(/\s+/).filter(Boolean);
}

/** Whether a part whose texts are these is found: all words stand in it, in whatever order. */
export function found(texts: string, words: readonly string[]): boolean {
  const all = plain(texts);
  return words.every((word) => all.includes(word));
}

/** Without capitals and accents: nobody has to type them. */
function plain(text: string): string {
  return text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
}
