import type { Client } from '../api/client';

// Bytes of attachments for the page. The routes want a token, which an <img> does not bring, and the window's engine plays no sound or
// film from the program's own scheme: so what is shown is fetched, and given to the elements as blob: addresses.

const mostKept = 24 * 1024 * 1024;
/** A larger one is fetched anew rather than the others be forgotten for it. */
const mostOfOne = 8 * 1024 * 1024;

const kept = new Map<string, Blob>();

/** The bytes of a path of the API. Those of an attachment never change, so they are kept for a while. */
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
