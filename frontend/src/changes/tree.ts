import type { ChangedFile } from '../api/records';

// Arranges changed files as a tree, directories first. A directory that contains only another directory shares its row.

export type Row =
  | { kind: 'dir'; key: string; name: string; depth: number; open: boolean; count: number }
  | { kind: 'file'; key: string; name: string; depth: number; file: ChangedFile };

interface Dir {
  dirs: Map<string, Dir>;
  files: { name: string; file: ChangedFile }[];
  count: number;
}

const empty = (): Dir => ({ dirs: new Map(), files: [], count: 0 });
const byName = (a: string, b: string) => a.localeCompare(b, undefined, { numeric: true }) || (a < b ? -1 : 1);

function gather(files: readonly ChangedFile[]): Dir {
  const top = empty();
  for (const file of files) {
    const parts = file.path.split('/');
    const name = parts.pop() ?? '';
    let at = top;
    at.count++;
    for (const part of parts) {
      let next = at.dirs.get(part);
      if (!next) at.dirs.set(part, (next = empty()));
      next.count++;
      at = next;
    }
    at.files.push({ name, file });
  }
  return top;
}

/** Returns the visible rows of the tree: rows in closed directories are left out. */
export function treeRows(files: readonly ChangedFile[], closed: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  const walk = (dir: Dir, path: string, depth: number) => {
    for (const first of [...dir.dirs.keys()].sort(byName)) {
      let name = first;
      let inner = dir.dirs.get(first);
      if (!inner) continue;
      for (
        let [only] = inner.dirs;
        inner.files.length === 0 && inner.dirs.size === 1 && only;
        [only] = inner.dirs
      ) {
        name += `/${only[0]}`;
        inner = only[1];
      }
      const key = `${path}${name}/`;
      const open = !closed.has(key);
      rows.push({ kind: 'dir', key, name, depth, open, count: inner.count });
      if (open) walk(inner, key, depth + 1);
    }
    for (const { name, file } of dir.files.sort((a, b) => byName(a.name, b.name)))
      rows.push({ kind: 'file', key: file.path, name, depth, file });
  };
  walk(gather(files), '', 0);
  return rows;
}

/** Returns the files in the order of the tree. */
export function inOrder(files: readonly ChangedFile[]): ChangedFile[] {
  return treeRows(files, new Set()).flatMap((row) => (row.kind === 'file' ? [row.file] : []));
}

export function parentOf(rows: readonly Row[], at: number): number {
  const depth = rows[at]?.depth ?? 0;
  return rows.findLastIndex((row, index) => index < at && row.depth < depth);
}
