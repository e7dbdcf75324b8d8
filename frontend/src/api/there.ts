import type { Client } from './client';
import { limited } from './limit';

const part = encodeURIComponent;

/**
 * Reports whether a file exists in one of the session's directories. It reads the first byte; a range error means an empty file, which
 * exists.
 */
export const isThere = async (client: Client, session: string, path: string): Promise<boolean> =>
  limited(async (signal) => {
    const headers = await client.headers();
    headers.set('Range', 'bytes=0-0');
    const { status } = await fetch(`/client/sessions/${part(session)}/tree/file?path=${part(path)}`, {
      headers,
      cache: 'no-store',
      signal,
    });
    return status === 200 || status === 206 || status === 416;
  });
