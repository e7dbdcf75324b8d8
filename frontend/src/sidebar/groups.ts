import type { Comparison, Session } from '../api/records';
import { statusOf } from '../ui/glyph';

// Groups the sessions of the sidebar by directory. In a group come sessions that wait for a person, then pinned sessions, then the newest.

export interface Group {
  id: string;
  path: string;
  missing: boolean;
  sessions: Session[];
}

export function groups(
  ordered: readonly Session[],
  filter: string,
  showArchived: boolean,
  title: (s: Session) => string,
): Group[] {
  const wanted = filter.trim().toLowerCase();
  const byWorkspace = new Map<string, Group>();
  for (const session of ordered) {
    if (session.archivedAt && !showArchived) continue;
    if (wanted && !fits(session, wanted, title(session))) continue;
    // A worktree belongs to the group of its original directory, even if that directory has no session.
    const { worktree, workspace, place } = session;
    const path = worktree?.from ?? workspace.path;
    const key = `${place} ${path}`;
    const own = { id: worktree ? path : workspace.id, missing: !worktree && workspace.missing === true };
    const group = byWorkspace.get(key);
    if (!group) byWorkspace.set(key, { path, ...own, sessions: [session] });
    else {
      if (!worktree) Object.assign(group, own);
      group.sessions.push(session);
    }
  }
  // Groups are in the order of their newest session, because sort is stable.
  for (const group of byWorkspace.values()) group.sessions.sort((a, b) => weight(b) - weight(a));
  return [...byWorkspace.values()];
}

function weight(session: Session): number {
  if (statusOf(session) === 'waiting') return 2;
  return session.pinned ? 1 : 0;
}

function fits(session: Session, wanted: string, title: string): boolean {
  const text =
    `${title} ${session.agentName} ${session.workspace.path} ${session.worktree?.branch ?? ''} ${session.labels.join(' ')}`.toLowerCase();
  return wanted.split(/\s+/).every((word) => text.includes(word));
}

export type TreeRow =
  | { kind: 'group'; key: string; group: Group; open: boolean }
  | MembersRow
  | SessionRow
  /** What the session above does or asks now. */
  | { kind: 'line'; key: string; session: Session; group: Group; text: string; depth?: number };

interface SessionRow {
  kind: 'session';
  key: string;
  session: Session;
  group: Group;
  /** Of a member of a comparison that is open: the key of its row, and what tells the member from the others. */
  of?: string;
  name?: string;
  /** Of the session of a subagent: how many sessions it is below. */
  depth?: number;
}

/** The row of a comparison, which opens into its members: see members.ts. */
export interface MembersRow {
  kind: 'members';
  key: string;
  comparison: Comparison;
  /** The listed members in the comparison's order; two at least. */
  sessions: readonly Session[];
  group: Group;
  open: boolean;
}

/** Returns the visible rows. lineOf returns what a session does or asks now; below returns the sessions of its subagents that are listed. */
export function treeRows(
  list: readonly Group[],
  collapsed: ReadonlySet<string>,
  lineOf: (session: Session) => string | undefined,
  below: (session: Session) => readonly Session[] = () => [],
): TreeRow[] {
  const withBelow = (session: Session, group: Group, depth: number): TreeRow[] => {
    const text = lineOf(session);
    const at = depth > 0 ? { depth } : {};
    const row: TreeRow = { kind: 'session', key: session.id, session, group, ...at };
    const line: TreeRow[] = text
      ? [{ kind: 'line', key: `line:${session.id}`, session, group, text, ...at }]
      : [];
    return [row, ...line, ...below(session).flatMap((one) => withBelow(one, group, depth + 1))];
  };

  return list.flatMap((group): TreeRow[] => {
    const open = !collapsed.has(group.id);
    const head: TreeRow = { kind: 'group', key: `group:${group.id}`, group, open };
    if (!open) return [head];
    return [head, ...group.sessions.flatMap((session) => withBelow(session, group, 0))];
  });
}
