// The sections of the settings in their order, and the search among them.

export const parts = [
  'general',
  'appearance',
  'agents',
  'mcp',
  'skills',
  'instructions',
  'usage',
  'permissions',
  'directories',
  'notifications',
  'keyboard',
  'updates',
  'about',
  'data',
  'files',
  'places',
  'discord',
  'access',
] as const;

/** The parts that ask the server for as long as they are shown, and keep what they show elsewhere than in the settings' file. */
const live = ['mcp', 'skills', 'instructions', 'usage'] as const;

export type Live = (typeof live)[number];

export function isLive(part: Part): part is Live {
  return live.some((one) => one === part);
}

/** The first of the parts that few people need. */
export const advanced: Part = 'data';

export type Part = (typeof parts)[number];

export function isPart(name: string | undefined): name is Part {
  return parts.some((part) => part === name);
}

/** Returns the words of a search, folded for comparison. */
export function wordsOf(typed: string): string[] {
  return plain(typed).split(/\s+/).filter(Boolean);
}

/** Reports whether texts contain all words, in any order. */
export function found(texts: string, words: readonly string[]): boolean {
  const all = plain(texts);
  return words.every((word) => all.includes(word));
}

/** Removes capitals and accents, which nobody should have to type. */
function plain(text: string): string {
  return text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
}
