export const linesOfPage = 40;

/** A text in pages of some lines; each ends with the end of a line. */
export function inPages(text: string): string[] {
  const list: string[] = [];
  let start = 0;
  let lines = 0;
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', end + 1)) {
    if (++lines % linesOfPage !== 0) continue;
    list.push(text.slice(start, end + 1));
    start = end + 1;
  }
  list.push(`${text.slice(start)}\n`);
  return list;
}
