// Converts a file to the text of an edit field and back. A field has a single kind of line end, and no byte order mark.

export interface Edited {
  text: string;
  /** The byte order mark, or an empty string. */
  mark: string;
  end: '\n' | '\r\n';
}

const byteOrder = '\ufeff';

/** Returns a file as editable text; undefined when the lines end in more than one way, because saving would change them. */
export function toEdit(content: string): Edited | undefined {
  const mark = content.startsWith(byteOrder) ? byteOrder : '';
  const rest = content.slice(mark.length);
  const windows = rest.includes('\r\n');
  const plain = rest.replaceAll('\r\n', '\n');
  if (plain.includes('\r') || (windows && /(^|[^\r])\n/.test(rest))) return undefined;
  return { text: plain, mark, end: windows ? '\r\n' : '\n' };
}

/** Returns the file's content for an edited text. */
export function toFile({ mark, end }: Pick<Edited, 'mark' | 'end'>, text: string): string {
  return mark + (end === '\n' ? text : text.replaceAll('\n', end));
}
