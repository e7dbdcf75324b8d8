// What is pasted into the composer: words stay words, unless there are too many of them.

/** A pasted text from this size on becomes a file. */
export const longText = 32 * 1024;

export function isLong(text: string): boolean {
  // No letter takes less than a byte, or more than three for each of its units.
  if (text.length > longText) return true;
  return text.length * 3 > longText && new TextEncoder().encode(text).length > longText;
}

/** What becomes a file; nothing where the engine keeps to itself what is pasted, as the window's does with pictures. */
export type Pasted = { files: File[] } | { long: string } | { nothing: true };

/** What of a paste becomes a file; undefined where it goes into the text as always. */
export function pasted(
  data: Pick<DataTransfer, 'files' | 'types' | 'getData'>,
  asText: boolean,
): Pasted | undefined {
  if (asText) return undefined;
  if (data.types.length === 0) return { nothing: true };
  const words = data.getData('text/plain');
  const files = [...data.files];
  // Programs for texts and tables offer a picture of what was copied beside it: the words are meant then.
  const pictured = words !== '' && data.types.includes('text/html');
  if (files.length > 0 && !pictured) return { files };
  return isLong(words) ? { long: words } : undefined;
}
