import type { Client } from '../api/client';
import type { components } from '../api/schema';

// What agents changed, turn by turn, and the calls that take it back.

type Schemas = components['schemas'];

export type Changes = Schemas['Changes'];
export type ChangedTurn = Schemas['ChangedTurn'];
export type ChangedFile = Schemas['ChangedFile'];
export type FileDiff = Schemas['FileDiff'];
export type Hunk = Schemas['Hunk'];
/** What was put back last, and can be taken back. */
export type LastRestoration = NonNullable<Changes['restoration']>;
/** What has become of files that were put back. */
export type Restored = Schemas['Restored'];
export type RestoredFile = Schemas['RestoredFile'];

/** What is compared: a turn's beginning with its end, or the beginning of the conversation with its latest. */
export type Scope = { turn: string } | { since: 'start' };

/** A hunk of a file; an empty one stands for all of the file. */
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

/** Remembers that hunks were looked at and stay, or forgets it. */
export const keep = (
  client: Client,
  session: string,
  scope: Scope | undefined,
  hunks: readonly HunkOf[],
  kept: boolean,
) => client.post(route(session, '/keep'), { ...scope, hunks, kept });

/** Takes hunks, or whole files, back to what they were before. It takes as long as the disk does. */
export const revert = (
  client: Client,
  session: string,
  scope: Scope | undefined,
  what: { hunks: readonly HunkOf[] } | { paths: readonly string[] },
  signal: AbortSignal,
) => restored(client.json<Answered>(route(session, '/revert'), signal, { ...scope, ...what }));

/** Puts everything back as it was before a turn; a preview changes nothing. With force also what others changed since. */
export const restore = (
  client: Client,
  session: string,
  turn: string,
  how: { preview: boolean; force: boolean },
  signal: AbortSignal,
) => restored(client.json<Answered>(route(session, '/restore'), signal, { turn, ...how }));

/** Takes one of the two back. */
export const undoRestoration = (client: Client, session: string, id: string, signal: AbortSignal) =>
  restored(client.json<Answered>(route(session, `/restorations/${encodeURIComponent(id)}/undo`), signal, {}));

type Answered = Omit<Restored, 'files'> & { files: RestoredFile[] | null };

async function restored(answer: Promise<Answered>): Promise<Restored> {
  const { files, ...rest } = await answer;
  return { ...rest, files: files ?? [] };
}
