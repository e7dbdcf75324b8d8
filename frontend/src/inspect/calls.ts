import type { Client } from '../api/client';
import { limited } from '../api/limit';
import type { Entry } from '../api/records';

// The calls of the inspector and the plan. Their records mirror backend/session/frames.go and context.go.

const part = encodeURIComponent;

/** A message between Deskhand and an agent, or a note of Deskhand. */
export interface Frame {
  seq: number;
  at: string;
  generation: number;
  dir: 'in' | 'out' | 'note';
  kind: 'request' | 'response' | 'notification' | 'note' | 'unknown';
  method?: string;
  /** The kind of a session/update. */
  update?: string;
  id?: unknown;
  /** For a response: milliseconds since its request. */
  ms?: number;
  failed?: boolean;
  size: number;
  damaged?: boolean;
}

export interface FramePage {
  items: Frame[];
  next?: number;
  more?: boolean;
}

export interface Filter {
  text: string;
  method: string;
  dir: '' | 'in' | 'out';
  notes: boolean;
}

export interface Wanted {
  after?: number;
  before?: number;
  limit: number;
  /** Seconds that the server may hold the call until new frames come. */
  wait?: number;
}

/** Lists frames of a session's wire without their messages. */
export async function frames(
  client: Client,
  session: string,
  { after, before, limit, wait }: Wanted,
  filter: Filter,
  end: AbortSignal,
): Promise<FramePage> {
  const query = new URLSearchParams({ limit: String(limit), bodies: 'false' });
  if (after !== undefined) query.set('after', String(after));
  if (before !== undefined) query.set('before', String(before));
  if (wait !== undefined) query.set('wait', String(wait));
  if (filter.text) query.set('q', filter.text);
  if (filter.method) query.set('method', filter.method);
  if (filter.dir) query.set('dir', filter.dir);
  if (filter.notes) query.set('notes', 'true');
  const page = await limited(
    (signal) =>
      client.json<Omit<FramePage, 'items'> & { items: Frame[] | null }>(
        `/client/sessions/${part(session)}/frames?${query}`,
        signal,
      ),
    end,
  );
  return { ...page, items: page.items ?? [] };
}

/** Returns a whole message from the journal. */
export async function message(
  client: Client,
  session: string,
  seq: number,
  end: AbortSignal,
): Promise<string> {
  const found = await limited(
    (signal) => client.blob(`/client/sessions/${part(session)}/frames/${seq}`, signal),
    end,
  );
  return found.text();
}

export interface Stderr {
  text: string;
  generation: number;
  running: boolean;
  pid?: number;
  elsewhere?: boolean;
}

export const stderr = (client: Client, session: string, end: AbortSignal) =>
  limited((signal) => client.json<Stderr>(`/client/sessions/${part(session)}/stderr`, signal), end);

/** The settings that an agent got when its session was last opened. */
export interface Given {
  generation: number;
  servers: { name: string; transport: string; own?: boolean }[];
  skills: boolean;
  turns: number;
  workedMs: number;
  plan?: Entry;
}

export async function given(client: Client, session: string, end: AbortSignal): Promise<Given> {
  const found = await limited(
    (signal) =>
      client.json<Omit<Given, 'servers'> & { servers: Given['servers'] | null }>(
        `/client/sessions/${part(session)}/given`,
        signal,
      ),
    end,
  );
  return { ...found, servers: found.servers ?? [] };
}

/** A call of the API by another program or a browser. */
export interface ApiCall {
  seq: number;
  at: string;
  method: string;
  path: string;
  status: number;
  ms: number;
  peer: string;
  by: string;
  token?: string;
  bytes: number;
}

/** Returns the newest calls, in the order of time. */
export async function apiCalls(client: Client, limit: number, end: AbortSignal): Promise<ApiCall[]> {
  const { items } = await limited(
    (signal) => client.json<{ items: ApiCall[] | null }>(`/client/audit?limit=${limit}`, signal),
    end,
  );
  return items ?? [];
}
