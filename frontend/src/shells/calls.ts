import type { Client } from '../api/client';
import type { components } from '../api/schema';

// The calls of the client API that are about a person's terminals. What goes over one is terminal/terminal.ts's.

type Schemas = components['schemas'];
export type Shell = Schemas['Shell'];
type NewShell = Schemas['NewShell'];

export interface Shells {
  items: Shell[];
  /** The code of why none can be opened. */
  off?: string | undefined;
}

const path = (session: string) => `/client/sessions/${encodeURIComponent(session)}/shells`;

export async function listShells(client: Client, session: string, signal: AbortSignal): Promise<Shells> {
  const { items, off } = await client.json<Schemas['ShellList']>(path(session), signal);
  return { items: items ?? [], off };
}

export const openShell = (client: Client, session: string, wish: NewShell, signal: AbortSignal) =>
  client.json<Shell>(path(session), signal, wish);

/** Ends its program, and returns when nothing of it runs any more. */
export const endShell = (client: Client, id: string) =>
  client.remove(`/client/terminals/${encodeURIComponent(id)}`);
