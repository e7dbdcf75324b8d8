import type { Client } from '../api/client';

// Fetches the bytes of attachments and gives them to elements as blob: addresses. An <img> cannot send the token that the routes require,
// and the window's engine plays no sound or film from the program's own scheme.

const mostKept = 24 * 1024 * 1024;
/** A larger file is fetched each time: keeping it would push out all others. */
const mostOfOne = 8 * 1024 * 1024;

const kept = new Map<string, Blob>();

/** Returns the bytes of an API path. The bytes of an attachment never change, so the newest are kept up to mostKept. */
export async function bytesOf(
  client: Pick<Client, 'blob'>,
  path: string,
  signal: AbortSignal,
): Promise<Blob> {
  const known = kept.get(path);
  if (known) {
    kept.delete(path);
    kept.set(path, known); // now the newest
    return known;
  }
  const blob = await client.blob(path, signal);
  if (blob.size <= mostOfOne) {
    kept.set(path, blob);
    let sum = [...kept.values()].reduce((all, one) => all + one.size, 0);
    for (const [old, { size }] of kept) {
      if (sum <= mostKept) break;
      kept.delete(old);
      sum -= size;
    }
  }
  return blob;
}
