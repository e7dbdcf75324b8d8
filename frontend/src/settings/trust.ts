// Approvals by directory.
import type { Approval, Executable } from '../api/records';
import { allProjects } from '../api/scope';

export interface TrustedDirectory {
  path: string;
  approvals: Approval[];
  /** A request for approval waits in the directory. */
  waits: boolean;
}

/** Returns the directories with approvals or waiting requests, those with requests first. */
export function directoriesOf(
  approvals: readonly Approval[],
  waiting: readonly string[],
): TrustedDirectory[] {
  const list = new Map<string, TrustedDirectory>();
  const at = (path: string) => {
    const known = list.get(path) ?? { path, approvals: [], waits: false };
    list.set(path, known);
    return known;
  };
  for (const path of waiting) at(path).waits = true;
  for (const approval of approvals) at(approval.directory).approvals.push(approval);
  return [...list.values()].sort((a, b) => Number(b.waits) - Number(a.waits) || a.path.localeCompare(b.path));
}

const same = (a: { kind: string; name: string; hash: string }, b: typeof a) =>
  a.kind === b.kind && a.name === b.name && a.hash === b.hash;

/**
 * Returns the executables that are approved for a directory, or would be. An entry of all projects that is approved for all of them has its
 * place among those.
 */
export function ofDirectory(
  list: readonly Executable[],
  { path, approvals }: TrustedDirectory,
): Executable[] {
  return list.filter(
    (one) =>
      one.scope !== 'all' ||
      path === allProjects ||
      !one.approved ||
      approvals.some((approval) => same(approval, one)),
  );
}

/** Returns when the current content of an executable was approved; undefined when it was not. */
export function approvedAt(executable: Executable, approvals: readonly Approval[]): string | undefined {
  return approvals.find((one) => same(one, executable))?.approvedAt;
}

/** Returns approvals without a current executable: of earlier contents, and of removed executables. */
export function gone(approvals: readonly Approval[], now: readonly Executable[]): Approval[] {
  return approvals.filter((one) => !now.some((executable) => same(one, executable)));
}
