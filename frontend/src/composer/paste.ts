// Decides whether pasted data goes into the text or becomes a file.

/** Pasted text of this size or more becomes a file. */
export const longText = 32 * 1024;

export function isLong(text: string): boolean {
  // A UTF-16 unit takes one to three bytes, so only texts in between are encoded.
  if (text.length > longText) return true;
  return text.length * 3 > longText && new TextEncoder().encode(text).length > longText;
}

/** The data that becomes a file. nothing: the engine hides the pasted data from the page, as the window's engine does with pictures. */
export type Pasted = { files: File[] } | { long: string } | { nothing: true };

/** Returns the part of a paste that becomes a file; undefined where the text is inserted as usual. */
export function pasted(
  data: Pick<DataTransfer, 'files' | 'types' | 'getData'>,
  asText: boolean,
): Pasted | undefined {
  if (asText) return undefined;
  if (data.types.length === 0) return { nothing: true };
  const words = data.getData('text/plain');
  const files = [...data.files];
  // Office programs add a picture of the copied text to the text. The person means the text.
  const pictured = words !== '' && data.types.includes('text/html');
  if (files.length > 0 && !pictured) return { files };
  return isLong(words) ? { long: words } : undefined;
}
