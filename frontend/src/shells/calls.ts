import type { Client } from '../api/client';
import type { components } from '../api/schema';

// The calls for a person's terminals. terminal/terminal.ts reads and writes a terminal.

type Schemas = components['schemas'];
export type Shell = Schemas['Shell'];
type NewShell = Schemas['NewShell'];

export interface Shells {
  items: Shell[];
  /** The code of the reason why no terminal can be opened. */
  off?: string | undefined;
}

const path = (session: string) => `/client/sessions/${encodeURIComponent(session)}/shells`;

export async function listShells(client: Client, session: string, signal: AbortSignal): Promise<Shells> {
  const { items, off } = await client.json<Schemas['ShellList']>(path(session), signal);
  return { items: items ?? [], off };
}

export const openShell = (client: Client, session: string, wish: NewShell, signal: AbortSignal) =>
  client.json<Shell>(path(session), signal, wish);

/** Ends a terminal's program, and returns when all its processes have ended. */
export const endShell = (client: Client, id: string) =>
  client.remove(`/client/terminals/${encodeURIComponent(id)}`);
