// Fences within fences. A model that shows a Markdown file puts the file between two fences, and the file has fences of its own. By
// CommonMark the first inner fence without a language ends the file, and the rest appears inside out.

/** Matches the info string of a Markdown file: the language, or the file's name. */
const file = /(?:^|\.)(?:md|mdx|mdc|mkd|mdown|markdown|rmarkdown|rmd|qmd|gfm|commonmark)$/i;
const opening = /^( {0,3})(`{3,}|~{3,})[ \t]*([^\s`{,:]*)([^`\n]*)\n/;

interface FileFence {
  readonly raw: string;
  readonly info: string;
  readonly text: string;
  /** An inner fence has ended but the file has not. It may turn out that this fence ended the file. */
  readonly unsure: boolean;
}

/**
 * Returns the Markdown file with inner fences at the start of a text; undefined where the text starts otherwise or the file has no inner
 * fences. An inner fence with a language opens a block, and a fence without a language closes a block. Where a finished text leaves the
 * file open, CommonMark's reading holds, because an inner block was not closed.
 */
export function fileFence(text: string, ended: boolean): FileFence | undefined {
  const [head, indent = '', mark = '', name = '', rest = ''] = opening.exec(text) ?? [];
  if (head === undefined || !file.test(name)) return undefined;
  const fence = new RegExp(`^([ \\t]*)(${mark.charAt(0)}{${mark.length},})([^\\n]*)$`, 'gm');
  fence.lastIndex = head.length;
  /** The open blocks in the file, the innermost last. */
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
      if (info.includes('`') || (inner && !inner.file)) continue; // inline code, or text of the block
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

/** Removes the indentation of the fence from the lines. */
function within(text: string, blanks: number): string {
  return blanks === 0 ? text : text.replace(new RegExp(`^ {1,${blanks}}`, 'gm'), '');
}
