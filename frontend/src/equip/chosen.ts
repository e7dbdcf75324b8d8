import { allProjects } from '../api/scope';

// The scope in which servers and skills are looked at: a project, or all projects.

export type Scope = 'project' | 'all';

export interface Chosen {
  scope: Scope;
  /** The project, also while all projects are looked at. */
  directory: string;
}

/** The last choice of the person, which counts while the same project is open in a conversation. */
let last: (Chosen & { open: string | undefined }) | undefined;

/** Returns what to show first: what a link wants, else the last choice, else the open project, else another known one. */
export function firstChosen(
  wanted: string | undefined,
  open: string | undefined,
  others: readonly (string | undefined)[],
): Chosen {
  const known = last?.open === open ? last : undefined;
  const directory = known?.directory || open || others.find(Boolean) || '';
  if (wanted === allProjects) return { scope: 'all', directory };
  if (wanted !== undefined) return { scope: 'project', directory: wanted };
  return { scope: known?.scope ?? 'project', directory };
}

export function remember(chosen: Chosen, open: string | undefined): void {
  last = { ...chosen, open };
}
