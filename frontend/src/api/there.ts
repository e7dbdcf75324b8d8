import type { Client } from './client';

/** Returns those of some paths at which files exist, in the session's directories. The server takes at most 200 at once. */
export const filesAmong = async (
  client: Client,
  session: string,
  paths: readonly string[],
): Promise<ReadonlySet<string>> => {
  const found = await client.call('POST /client/sessions/{id}/tree/files', {
    path: { id: session },
    body: { paths },
  });
  return new Set(found.paths);
};
