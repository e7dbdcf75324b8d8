// The scope of a configuration: a directory, or all projects.

/** Stands in place of a directory's path for the entries of all projects. No path of a directory looks so. */
export const allProjects = '*';

/** Returns the part of a call that says what the call is about. */
export function scopeOf(directory: string): { directory: string } | { scope: 'all' } {
  return directory === allProjects ? { scope: 'all' } : { directory };
}
