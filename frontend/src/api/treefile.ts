import type { Client } from './client';
import { addressOf } from './route';

/** Returns the address of a file's content. */
export const filePath = (id: string, path: string, download = false) =>
  addressOf('GET /client/sessions/{id}/tree/file', {
    path: { id },
    query: { path, download: download ? 1 : undefined },
  });

/** The file that writeFile may replace: the given version, any file, or none. */
type Replaceable = { version: string } | 'anything' | 'nothing';

/** Writes a file. The errors tree.changed and tree.exists mean that another version of the file exists by now. */
export async function writeFile(
  client: Client,
  id: string,
  path: string,
  content: Blob | Uint8Array<ArrayBuffer>,
  over: Replaceable,
  signal?: AbortSignal,
) {
  const headers: Record<string, string> =
    over === 'nothing'
      ? { 'If-None-Match': '*' }
      : { 'If-Match': over === 'anything' ? '*' : JSON.stringify(over.version) };
  // The window's engine drops a File on its way to the program's own scheme, so the body is bytes.
  const bytes = content instanceof Blob ? await content.arrayBuffer() : content;
  return client.call('PUT /client/sessions/{id}/tree/file', {
    path: { id },
    query: { path },
    headers,
    bytes,
    signal,
  });
}
