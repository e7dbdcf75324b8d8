import type { TreeEntry, TreeListing } from '../api/records';

// Flattens the open directories of a file tree into a list of rows.

export type Row =
  | {
      kind: 'entry';
      id: string;
      entry: TreeEntry;
      level: number;
      open: boolean | undefined;
      at: number;
      of: number;
    }
  | { kind: 'note'; id: string; level: number; what: 'loading' | 'empty' | 'more' | 'fault'; text: string };

/** The state of a directory: loading, failed, or listed. */
export type Known =
  { state: 'loading' } | { state: 'fault'; text: string } | ({ state: 'there' } & TreeListing);

/** Reports whether an entry can be opened as a directory. */
export function isDirectory({ kind, leads, missing, unnamed }: TreeEntry): boolean {
  return !missing && !unnamed && (kind === 'directory' || leads === 'directory');
}

/** Reports whether an entry can be opened as a file. */
export function isFile({ kind, leads, unnamed }: TreeEntry): boolean {
  return !unnamed && (kind === 'file' || leads === 'file');
}

export function rowsOf(
  roots: readonly TreeEntry[],
  known: ReadonlyMap<string, Known>,
  open: ReadonlySet<string>,
): Row[] {
  const rows: Row[] = [];
  const [only, ...others] = roots;
  // A single root needs no row: its entries are at the first level.
  if (only && others.length === 0 && !only.missing) within(only.path, 1);
  else entries(roots, 1, '');
  return rows;

  function entries(list: readonly TreeEntry[], level: number, parent: string) {
    list.forEach((entry, index) => {
      const opened = isDirectory(entry) ? open.has(entry.path) : undefined;
      // A link may lead to a directory above, whose entries then appear twice; so the id is the path in the tree.
      const id = parent === '' ? entry.path : `${parent}/${entry.name}`;
      rows.push({ kind: 'entry', id, entry, level, open: opened, at: index + 1, of: list.length });
      if (opened) within(entry.path, level + 1);
    });
  }

  function within(path: string, level: number) {
    const what = known.get(path);
    const note = (kind: 'loading' | 'empty' | 'more' | 'fault', text = '') =>
      rows.push({ kind: 'note', id: `${path}\0${kind}`, level, what: kind, text });
    if (what === undefined || what.state === 'loading') note('loading');
    else if (what.state === 'fault') note('fault', what.text);
    else {
      entries(what.items, level, path);
      if (what.items.length === 0) note('empty');
      if (what.more) note('more', String(what.items.length));
    }
  }
}

/** Returns the range of rows in view, and some beyond it. */
export function seenRows(
  top: number,
  height: number,
  row: number,
  count: number,
): { from: number; to: number } {
  const around = 10;
  const from = Math.max(0, Math.floor(top / row) - around);
  return { from, to: Math.min(count, Math.ceil((top + height) / row) + around) };
}

/** Returns a path relative to the session's directory that contains it, as a mention in a message has it; otherwise the whole path. */
export function relativeTo(roots: readonly string[], path: string): string {
  for (const [index, root] of roots.entries()) {
    const rest = path.startsWith(root) ? path.slice(root.length) : '';
    if (!/^[/\\]/.test(rest)) continue;
    return index === 0 ? rest.replace(/^[/\\]+/, '') : path;
  }
  return path;
}

/** Returns the directories that lead to a path, the outermost first. The list is empty when no root contains the path. */
export function wayTo(roots: readonly string[], path: string): string[] {
  const root = roots.find((one) => path.startsWith(one) && /^[/\\]/.test(path.slice(one.length)));
  if (root === undefined) return [];
  const way = [root];
  for (let at = root.length + 1; ;) {
    const next = path.slice(at).search(/[/\\]/);
    if (next < 0) return way;
    at += next + 1;
    way.push(path.slice(0, at - 1));
  }
}

export function parentOf(path: string): string {
  return path.replace(/[/\\][^/\\]*$/, '');
}

export function joined(directory: string, name: string): string {
  const separator = /^[A-Za-z]:\\|^\\\\/.test(directory) ? '\\' : '/';
  return directory.endsWith(separator) ? directory + name : directory + separator + name;
}
