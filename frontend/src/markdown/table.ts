// Rows of tables that hold more pipes than there are columns. To GFM a pipe between backticks divides cells as any other, and what does not
// fit into the columns is left out: half of what such a row says was gone.

/** Code, and formulas, in which a pipe is no border. */
const whole = /(`+)(?!`)(?:[^`\n]|`(?!`))*?[^`\n]\1(?!`)|\\\(.*?\\\)|\$\$.*?\$\$/g;

/** The pipes of a row that divide its cells; those that have a backslash do not. */
function borders(row: string): number[] {
  const list: number[] = [];
  for (let at = row.indexOf('|'); at >= 0; at = row.indexOf('|', at + 1)) {
    let slashes = 0;
    while (row[at - slashes - 1] === '\\') slashes++;
    if (slashes % 2 === 0) list.push(at);
  }
  return list;
}

/** How many cells so many borders make: those at the ends of a row divide nothing. */
function cells(row: string, at: readonly number[]): number {
  const first = at[0];
  const last = at.at(-1);
  if (first === undefined || last === undefined) return 1;
  const leads = row.slice(0, first).trim() === '';
  const ends = at.length > 1 && row.slice(last + 1).trim() === '';
  return at.length + 1 - Number(leads) - Number(ends);
}

/** A row in which no more than so many cells are: a backslash stands before each pipe that is none of their borders. */
export function fitted(row: string, columns: number): string {
  const all = borders(row);
  if (cells(row, all) <= columns) return row;
  const code = [...row.matchAll(whole)].map(({ index, 0: { length } }) => [index, index + length] as const);
  let kept = all.filter((at) => !code.some(([from, to]) => at > from && at < to));
  if (cells(row, kept) > columns) {
    // What is too much stands in the last cell.
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

/** The text of a table, each row of which has at most as many cells as there are columns; undefined where that is so already. */
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
