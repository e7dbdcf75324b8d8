import type { Comparison } from '../api/records';
import type { TreeRow } from './groups';

// What the list needs for comparisons, loaded where there is one.

export { default as Actions } from './Actions.svelte';
export { default as Members } from './Members.svelte';

export const keyOf = (comparison: string) => `compare:${comparison}`;

/**
 * Gathers the rows of the members of each comparison in one row, where the first of them stands; those rows follow it when it is open. A single
 * listed member is an ordinary row. comparisonOf returns the comparison of a session, and open tells whether the row with a key is open.
 */
export function gathered(
  rows: readonly TreeRow[],
  comparisonOf: (session: string) => Comparison | undefined,
  open: (key: string) => boolean,
): TreeRow[] {
  const listed = new Set(rows.map(({ key }) => key));
  const lines = new Map(rows.map((row) => [row.key, row]));
  const several = (of: Comparison) => of.members.filter(({ session }) => listed.has(session));
  const done = new Set<string>();
  return rows.flatMap((row): TreeRow[] => {
    if (row.kind !== 'session' && row.kind !== 'line') return [row];
    const comparison = comparisonOf(row.session.id);
    const members = comparison ? several(comparison) : [];
    if (!comparison || members.length < 2) return [row];
    const key = keyOf(comparison.id);
    if (done.has(key)) return [];
    done.add(key);
    const shown = open(key);
    const own = members.flatMap(({ session, name }): TreeRow[] => {
      const found = lines.get(session);
      const line = lines.get(`line:${session}`);
      return found?.kind === 'session' ? [{ ...found, of: key, name }, ...(line ? [line] : [])] : [];
    });
    const sessions = own.flatMap((one) => (one.kind === 'session' ? one.session : []));
    const head: TreeRow = { kind: 'members', key, comparison, sessions, group: row.group, open: shown };
    return [head, ...(shown ? own : [])];
  });
}
