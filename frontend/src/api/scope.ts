import type { Equipment } from './records';

// The scope of a configuration: a directory, or all projects.

/** Stands in place of a directory's path for the entries of all projects. No path of a directory looks so. */
export const allProjects = '*';

/** Returns the part of a call that says what the call is about. */
export function scopeOf(directory: string): { directory: string } | { scope: 'all' } {
  return directory === allProjects ? { scope: 'all' } : { directory };
}

type Ask<T> = (directory: string, signal?: AbortSignal) => Promise<Equipment<T>>;

/** Returns the entries that an agent gets in a directory: its own, then those of all projects whose names it does not have. */
export async function inDirectory<T extends { name: string }>(
  ask: Ask<T>,
  directory: string,
  signal?: AbortSignal,
): Promise<Equipment<T>> {
  const [own, all] = await Promise.all([ask(directory, signal), ask(allProjects, signal)]);
  const names = new Set(own.items.map(({ name }) => name));
  const problem = [own.problem, all.problem].filter(Boolean).join('\n');
  return {
    path: own.path,
    items: [...own.items, ...all.items.filter(({ name }) => !names.has(name))],
    ...(problem === '' ? {} : { problem }),
  };
}
