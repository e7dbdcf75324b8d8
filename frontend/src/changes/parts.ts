import type { Diff } from '../content/diff';

// The hunks of a difference, of which a person commits some.

/** Returns the hunks of a difference: the parts between lines that are not shown. */
export function hunksOf(diff: Diff): Diff[] {
  const hunks: Diff[] = [];
  let open: Diff | undefined;
  for (const line of diff.lines) {
    if (line.kind === 'gap') {
      open = undefined;
      continue;
    }
    if (!open) hunks.push((open = { lines: [], added: 0, removed: 0, coarse: false }));
    open.lines.push(line);
    if (line.kind === 'add') open.added++;
    if (line.kind === 'remove') open.removed++;
  }
  return hunks;
}

/** Returns the text that has all hunks but those that are left out, by their numbers. */
export function withHunks(
  before: string,
  after: string,
  hunks: readonly Diff[],
  left: ReadonlySet<number>,
): string {
  const old = before === '' ? [] : before.replace(/\n$/, '').split('\n');
  const text: string[] = [];
  let at = 0; // old lines that are done
  hunks.forEach(({ lines }, n) => {
    const numbers = lines.flatMap((line) => ('before' in line ? [line.before] : []));
    const first = numbers[0] ?? at + 1;
    const last = numbers.at(-1) ?? at;
    text.push(...old.slice(at, first - 1));
    if (left.has(n)) text.push(...old.slice(first - 1, last));
    else for (const line of lines) if (line.kind === 'same' || line.kind === 'add') text.push(line.text);
    at = last;
  });
  text.push(...old.slice(at));
  if (text.length === 0) return '';
  const ends = (left.has(hunks.length - 1) ? before : after).endsWith('\n');
  return text.join('\n') + (ends ? '\n' : '');
}
