import type { Session } from '../api/records';

export interface Project {
  cwd: string;
  place: string;
}

export interface Recent {
  path: string;
  at: string;
}

/** Returns the directory and the place that a session belongs to, whose worktree counts as the directory that it was made from. */
export function projectOf(session: Session): Project {
  return { cwd: session.worktree?.from ?? session.workspace.path, place: session.place };
}

/**
 * Returns the directories of a place's sessions, the newest first, without missing directories. A worktree counts as its original
 * directory.
 */
export function recentDirectories(sessions: readonly Session[], most: number, place = 'local'): Recent[] {
  const newest = new Map<string, string>();
  for (const session of sessions) {
    if ((session.workspace.missing && !session.worktree) || session.place !== place) continue;
    const { cwd: path } = projectOf(session);
    const held = newest.get(path);
    if (held === undefined || held < session.updatedAt) newest.set(path, session.updatedAt);
  }
  return [...newest]
    .map(([path, at]) => ({ path, at }))
    .sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0))
    .slice(0, most);
}
