// Repairs table rows with more pipes than columns. In GFM a pipe between backticks divides cells like any other, and cells beyond the last
// column are dropped, so that half of such a row disappeared.

/** Matches code and formulas, in which a pipe is no border. */
const whole = /(`+)(?!`)(?:[^`\n]|`(?!`))*?[^`\n]\1(?!`)|\\\(.*?\\\)|\$\$.*?\$\$/g;

/** Returns the positions of the pipes that divide cells. Escaped pipes do not. */
function borders(row: string): number[] {
  const list: number[] = [];
  for (let at = row.indexOf('|'); at >= 0; at = row.indexOf('|', at + 1)) {
    let slashes = 0;
    while (row[at - slashes - 1] === '\\') slashes++;
    if (slashes % 2 === 0) list.push(at);
  }
  return list;
}

/** Returns the number of cells. Pipes at the ends of a row divide nothing. */
function cells(row: string, at: readonly number[]): number {
  const first = at[0];
  const last = at.at(-1);
  if (first === undefined || last === undefined) return 1;
  const leads = row.slice(0, first).trim() === '';
  const ends = at.length > 1 && row.slice(last + 1).trim() === '';
  return at.length + 1 - Number(leads) - Number(ends);
}

/** Returns a row with at most the given number of cells: pipes that are no borders are escaped. */
function fitted(row: string, columns: number): string {
  const all = borders(row);
  if (cells(row, all) <= columns) return row;
  const code = [...row.matchAll(whole)].map(({ index, 0: { length } }) => [index, index + length] as const);
  let kept = all.filter((at) => !code.some(([from, to]) => at > from && at < to));
  if (cells(row, kept) > columns) {
    // Surplus cells are joined to the last cell.
    const leads = row.slice(0, kept[0]).trim() === '';
    const last = kept.at(-1) ?? 0;
    const ends = row.slice(last + 1).trim() === '';
    kept = kept.slice(0, columns - Number(!leads));
    if (ends) kept.push(last);
  }
  let made = '';
  let from = 0;
  for (const at of all) {
    if (kept.includes(at)) continue;
    made += `${row.slice(from, at)}\\`;
    from = at;
  }
  return made + row.slice(from);
}

const rule = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

/** Returns a table whose rows have at most as many cells as there are columns; undefined when that is so already. */
export function fittedTable(text: string): string | undefined {
  const lines = text.split('\n');
  const second = lines[1] ?? '';
  if (!rule.test(second)) return undefined;
  const columns = cells(second, borders(second));
  let changed = false;
  lines.forEach((line, index) => {
    const fit = index === 1 ? line : fitted(line, columns);
    if (fit === line) return;
    lines[index] = fit;
    changed = true;
  });
  return changed ? lines.join('\n') : undefined;
}
