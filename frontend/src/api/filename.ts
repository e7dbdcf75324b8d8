/** Returns the file name of a Content-Disposition header, without directories; undefined when the header names none. */
export function fileNameOf(disposition: string | null): string | undefined {
  if (!disposition) return undefined;
  const coded = /filename\*\s*=\s*utf-8'[^']*'([^;\s]+)/i.exec(disposition)?.[1];
  const plain = /filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))/i.exec(disposition);
  const name = decoded(coded) ?? plain?.[1]?.replace(/\\(.)/g, '$1') ?? plain?.[2];
  return name?.split(/[/\\]/).at(-1) || undefined;
}

function decoded(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
