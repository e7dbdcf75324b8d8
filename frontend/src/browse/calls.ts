import type { Client } from '../api/client';
import { ApiError, problem } from '../api/errors';
import { limited } from '../api/limit';
import type { components } from '../api/schema';

// The calls of the client API for files in a session's directories.

type Schemas = components['schemas'];
export type TreeEntry = Schemas['TreeEntry'];
export type Preview = Schemas['TreePreview'];
export type Written = Schemas['TreeWritten'];
export type Copied = Schemas['TreeCopied'];

export interface Listing {
  items: TreeEntry[];
  more: boolean;
}

const part = encodeURIComponent;
const route = (session: string, rest = '') => `/client/sessions/${part(session)}/tree${rest}`;

/** Lists a directory, or the session's directories where no path is given. */
export async function listTree(
  client: Client,
  session: string,
  path: string | undefined,
  signal: AbortSignal,
): Promise<Listing> {
  const { items, more } = await client.json<Schemas['TreeListing']>(
    route(session, path === undefined ? '' : `?path=${part(path)}`),
    signal,
  );
  return { items: items ?? [], more: more === true };
}

export const previewFile = (client: Client, session: string, path: string, signal: AbortSignal) =>
  client.json<Preview>(route(session, `/preview?path=${part(path)}`), signal);

export const filePath = (session: string, path: string, download = false) =>
  route(session, `/file?path=${part(path)}${download ? '&download=1' : ''}`);

/** The file that writeFile may replace: the given version, any file, or none. */
export type Over = { version: string } | 'anything' | 'nothing';

/** Writes a file. The errors tree.changed and tree.exists mean that another version of the file exists by now. */
export function writeFile(
  client: Client,
  session: string,
  path: string,
  content: Blob | Uint8Array<ArrayBuffer>,
  over: Over,
  signal?: AbortSignal,
): Promise<Written> {
  const send = async (until: AbortSignal) => {
    const headers = await client.headers();
    headers.set('Content-Type', 'application/octet-stream');
    if (over === 'nothing') headers.set('If-None-Match', '*');
    else headers.set('If-Match', over === 'anything' ? '*' : JSON.stringify(over.version));
    try {
      const answer = await fetch(filePath(session, path), {
        method: 'PUT',
        headers,
        // The window's engine drops a File on its way to the program's own scheme, so the body is bytes.
        body: content instanceof Blob ? await content.arrayBuffer() : content,
        cache: 'no-store',
        signal: until,
      });
      if (!answer.ok) throw problem(answer.status, await answer.json().catch(() => undefined));
      return (await answer.json()) as Written;
    } catch (thrown) {
      if (thrown instanceof ApiError || until.aborted) throw thrown;
      client.doubt();
      throw new ApiError('network', {}, 0, thrown instanceof Error ? thrown.message : '');
    }
  };
  return signal ? send(signal) : limited(send);
}

/** Copies files of this computer into a directory. */
export async function copyInto(
  client: Client,
  session: string,
  paths: readonly string[],
  to: string,
  replace: boolean,
  signal: AbortSignal,
): Promise<Copied> {
  const done = await client.json<Copied>(route(session, '/copy'), signal, { paths, to, replace });
  return { items: done.items ?? [], problems: done.problems ?? [] };
}
