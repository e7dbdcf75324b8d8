import { en } from './en';

/** The loaded texts by key. */
export const texts: Record<string, string> = { ...en };

/** Adds the texts of a part of the page that is loaded on demand. */
export function addTexts(more: Readonly<Record<string, string>>): void {
  Object.assign(texts, more);
}
