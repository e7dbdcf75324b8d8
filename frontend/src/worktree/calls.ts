import type { Client } from '../api/client';
import { unlimited } from '../api/limit';
import type { components } from '../api/schema';

// The calls for the worktrees of sessions.

type Schemas = components['schemas'];

export type Plan = Schemas['WorktreePlan'];
export type Removal = Schemas['WorktreeRemoval'];

const patience = 10_000;
const route = (session: string) => `/client/sessions/${encodeURIComponent(session)}/worktree`;

/** Returns the worktree that a session in a directory would get, or the reason why it cannot have any. */
export const plan = (client: Client, cwd: string) =>
  client.json<Plan>(`/client/worktrees/plan?${new URLSearchParams({ cwd }).toString()}`, unlimited());

/** Returns the branches and files that a removal would keep and delete. */
export async function preview(client: Client, session: string, signal: AbortSignal): Promise<Removal> {
  type Answered = Omit<Removal, 'changed' | 'ignored' | 'others'> & {
    [key in 'changed' | 'ignored' | 'others']: Removal[key] | null;
  };
  const found = await client.json<Answered>(route(session), signal);
  return {
    ...found,
    changed: found.changed ?? [],
    ignored: found.ignored ?? [],
    others: found.others ?? [],
  };
}

/** Removes a worktree; the call lasts as long as the disk takes. It returns the path of a rest that could not be deleted. */
export async function remove(client: Client, session: string): Promise<string | undefined> {
  await client.remove(route(session), unlimited());
  try {
    const { worktree } = await client.json<{ worktree?: { left?: string } }>(
      `/client/sessions/${encodeURIComponent(session)}`,
      AbortSignal.timeout(patience),
    );
    return worktree?.left;
  } catch {
    return undefined; // the worktree is removed all the same
  }
}

/** Creates the worktree again; the call lasts as long as git takes. */
export const bringBack = (client: Client, session: string) =>
  client.post(`${route(session)}/restore`, undefined, unlimited());
