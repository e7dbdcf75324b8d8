import type { Client } from '../api/client';
import { unlimited } from '../api/limit';
import type { components } from '../api/schema';

// Work trees of conversations, and the calls about them.

type Schemas = components['schemas'];

export type Plan = Schemas['WorktreePlan'];
export type Removal = Schemas['WorktreeRemoval'];

const patience = 10_000;
const route = (session: string) => `/client/sessions/${encodeURIComponent(session)}/worktree`;

/** What one would be like in a directory, or why there can be none. */
export const plan = (client: Client, cwd: string) =>
  client.json<Plan>(`/client/worktrees/plan?${new URLSearchParams({ cwd }).toString()}`, unlimited());

/** What a removal would keep, and what would go. */
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

/** Removes it, which takes as long as the disk does. Gives where what could not be deleted of it lies, when there is such. */
export async function remove(client: Client, session: string): Promise<string | undefined> {
  await client.remove(route(session), unlimited());
  try {
    const { worktree } = await client.json<{ worktree?: { left?: string } }>(
      `/client/sessions/${encodeURIComponent(session)}`,
      AbortSignal.timeout(patience),
    );
    return worktree?.left;
  } catch {
    return undefined; // it is removed all the same
  }
}

/** Makes it anew, which takes as long as git does. */
export const bringBack = (client: Client, session: string) =>
  client.post(`${route(session)}/restore`, undefined, unlimited());
