import type { MemberResult } from '../api/records';

// What the members of a comparison have changed, a file a row.

type Cell = MemberResult['files'][number];

interface FileRow {
  path: string;
  /** What each member has done to the file, in the order of the members; undefined = nothing. */
  cells: (Cell | undefined)[];
}

/** Returns the files that any member has changed, by path. */
export function fileRows(results: readonly Pick<MemberResult, 'files'>[]): FileRow[] {
  const rows = new Map<string, FileRow>();
  for (const [at, { files }] of results.entries()) {
    for (const file of files) {
      const row = rows.get(file.path) ?? { path: file.path, cells: results.map(() => undefined) };
      row.cells[at] = file;
      rows.set(file.path, row);
    }
  }
  return [...rows.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Returns the paths of files for the call that takes them: of a renamed file, the earlier path goes, too. */
export function takenPaths(files: readonly Cell[]): string[] {
  return files.flatMap(({ path, was }) => (was === undefined ? [path] : [path, was]));
}
