// Fences within fences. A model that shows a file of Markdown puts it between two fences, and the file has fences of its own: to CommonMark the
// first of those that says no language ends the file, and all that follows it is shown the wrong way round.

/** What stands after the fence of a file of Markdown: the language, or the file's name. */
const file = /(?:^|\.)(?:md|mdx|mdc|mkd|mdown|markdown|rmarkdown|rmd|qmd|gfm|commonmark)$/i;
const opening = /^( {0,3})(`{3,}|~{3,})[ \t]*([^\s`{,:]*)([^`\n]*)\n/;

export interface FileFence {
  readonly raw: string;
  readonly info: string;
  readonly text: string;
  /** A fence in it has ended, and the file has not: it may have been the file that ended there. */
  readonly unsure: boolean;
}

/**
 * The file of Markdown, with fences of its own, that a text begins with. Nothing where the text begins with something else, or where its
 * file has no such fences. A fence with a language begins a block in the file, and one without ends it. Where a text that has ended leaves
 * the file open, CommonMark is right: one of the fences in it was not closed.
 */
export function fileFence(text: string, ended: boolean): FileFence | undefined {
  const [head, indent = '', mark = '', name = '', rest = ''] = opening.exec(text) ?? [];
  if (head === undefined || !file.test(name)) return undefined;
  const fence = new RegExp(`^([ \\t]*)(${mark.charAt(0)}{${mark.length},})([^\\n]*)$`, 'gm');
  fence.lastIndex = head.length;
  /** The blocks that are open in the file, the innermost last. */
  const open: { length: number; file: boolean }[] = [];
  const made = (raw: string, body: string, unsure: boolean): FileFence => ({
    raw,
    info: (name + rest).trim(),
    text: within(body, indent.length),
    unsure,
  });
  let nested = false;
  let closed = false;
  for (let found = fence.exec(text); found; found = fence.exec(text)) {
    const [line, before = '', { length } = '', after = ''] = found;
    const inner = open.at(-1);
    const info = after.trim();
    if (info !== '') {
      if (info.includes('`') || (inner && !inner.file)) continue; // code within a line, or text of the block
      open.push({ length, file: file.test(/^[^\s{,:]*/.exec(info)?.[0] ?? '') });
      nested = true;
    } else if (inner) {
      if (length < inner.length) continue;
      open.pop();
      closed = true;
    } else if (/^ {0,3}$/.test(before)) {
      if (!nested) return undefined;
      const body = text.slice(head.length, found.index);
      return made(text.slice(0, found.index + line.length), body.replace(/\n$/, ''), false);
    }
  }
  return nested && closed && !ended ? made(text, text.slice(head.length), true) : undefined;
}

/** Lines without the blanks that their fence stands behind. */
function within(text: string, blanks: number): string {
  return blanks === 0 ? text : text.replace(new RegExp(`^ {1,${blanks}}`, 'gm'), '');
}
