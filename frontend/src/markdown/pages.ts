export const linesOfPage = 40;

/** Splits a text into pages of some lines. Each page ends with a line end. */
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
