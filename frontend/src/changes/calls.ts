import type { Client } from '../api/client';
import type { components } from '../api/schema';

// The calls for the changes of a session's turns, and for undoing them.

type Schemas = components['schemas'];

export type Changes = Schemas['Changes'];
export type ChangedTurn = Schemas['ChangedTurn'];
export type ChangedFile = Schemas['ChangedFile'];
export type FileDiff = Schemas['FileDiff'];
export type Hunk = Schemas['Hunk'];
/** The last restoration, which can be undone. */
export type LastRestoration = NonNullable<Changes['restoration']>;
/** The result of a restoration for each file. */
export type Restored = Schemas['Restored'];
export type RestoredFile = Schemas['RestoredFile'];

/** The compared states: the begin and the end of a turn, or the begin of the session and the present. */
export type Scope = { turn: string } | { since: 'start' };

/** A hunk of a file. An empty hunk stands for the whole file. */
export interface HunkOf {
  path: string;
  hunk: string;
}

const route = (session: string, rest = '') =>
  `/client/sessions/${encodeURIComponent(session)}/changes${rest}`;

function query(scope: Scope | undefined, more: Record<string, string> = {}): string {
  const text = new URLSearchParams({ ...scope, ...more }).toString();
  return text ? `?${text}` : '';
}

export async function changes(
  client: Client,
  session: string,
  scope: Scope | undefined,
  signal: AbortSignal,
): Promise<Changes> {
  const found = await client.json<
    Omit<Changes, 'turns' | 'files'> & { turns: ChangedTurn[] | null; files: ChangedFile[] | null }
  >(route(session, query(scope)), signal);
  return { ...found, turns: found.turns ?? [], files: found.files ?? [] };
}

export async function fileDiff(
  client: Client,
  session: string,
  scope: Scope | undefined,
  path: string,
  signal: AbortSignal,
): Promise<FileDiff> {
  const found = await client.json<Omit<FileDiff, 'hunks'> & { hunks: Hunk[] | null }>(
    route(session, `/file${query(scope, { path })}`),
    signal,
  );
  return { ...found, hunks: found.hunks ?? [] };
}

/** Marks hunks as kept, or removes the mark. */
export const keep = (
  client: Client,
  session: string,
  scope: Scope | undefined,
  hunks: readonly HunkOf[],
  kept: boolean,
) => client.post(route(session, '/keep'), { ...scope, hunks, kept });

/** Reverts hunks or whole files. The call lasts as long as the disk takes. */
export const revert = (
  client: Client,
  session: string,
  scope: Scope | undefined,
  what: { hunks: readonly HunkOf[] } | { paths: readonly string[] },
  signal: AbortSignal,
) => restored(client.json<Answered>(route(session, '/revert'), signal, { ...scope, ...what }));

/** Restores all files as they were before a turn. A preview changes nothing; force also overwrites later changes by others. */
export const restore = (
  client: Client,
  session: string,
  turn: string,
  how: { preview: boolean; force: boolean },
  signal: AbortSignal,
) => restored(client.json<Answered>(route(session, '/restore'), signal, { turn, ...how }));

/** Undoes a revert or a restoration. */
export const undoRestoration = (client: Client, session: string, id: string, signal: AbortSignal) =>
  restored(client.json<Answered>(route(session, `/restorations/${encodeURIComponent(id)}/undo`), signal, {}));

type Answered = Omit<Restored, 'files'> & { files: RestoredFile[] | null };

async function restored(answer: Promise<Answered>): Promise<Restored> {
  const { files, ...rest } = await answer;
  return { ...rest, files: files ?? [] };
}
