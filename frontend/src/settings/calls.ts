import type { Client } from '../api/client';
import { limited, unlimited } from '../api/limit';
import type { components } from '../api/schema';

// The calls of the client API that the settings alone make.

type Schemas = components['schemas'];

/** A key to the API that a person has made. */
export type Token = Schemas['Token'];
export type NewToken = Schemas['NewToken'];
/** One with what it is, which is told once. */
export type MadeToken = Schemas['MadeToken'];
export type Call = Schemas['Call'];
export type LocalApi = Schemas['LocalAPI'];

/** Nothing of these takes long; what does is ended by whoever gives the signal. */
const patience = 30_000;
const soon = () => AbortSignal.timeout(patience);

export const localApi = (client: Client) => client.json<LocalApi>('/client/local-api', soon());
export const switchLocalApi = (client: Client, on: boolean) =>
  client.json<LocalApi>('/client/local-api', soon(), { on }, 'PUT');

export async function tokens(client: Client): Promise<Token[]> {
  const { items } = await client.json<{ items: Token[] | null }>('/client/tokens', soon());
  return items ?? [];
}
export const makeToken = (client: Client, wish: NewToken) =>
  client.json<MadeToken>('/client/tokens', soon(), wish);
export const revokeToken = (client: Client, id: string) =>
  client.remove(`/client/tokens/${encodeURIComponent(id)}`);

/** The calls after a number, the oldest first; without one the last. */
export async function audit(client: Client, after: number, limit: number, signal: AbortSignal) {
  const { items, kept } = await client.json<{ items: Call[] | null; kept: number }>(
    `/client/audit?after=${after}&limit=${limit}`,
    signal,
  );
  return { items: items ?? [], kept };
}

/** What is done to all that is kept, or was done last. */
export type Work = Schemas['Work'];
export type StoragePart = Schemas['StoragePart'];

/** What the data directory holds, the largest first. It takes as long as the disk does. */
export async function storageParts(client: Client, signal: AbortSignal): Promise<StoragePart[]> {
  const { items } = await client.json<{ items: StoragePart[] | null }>('/client/storage/parts', signal);
  return items ?? [];
}
/** How far these are is told with the storage. */
export const compact = (client: Client) => client.json<Work>('/client/storage/compact', soon(), {});
export const exportAll = (client: Client, path: string) =>
  client.json<Work>('/client/storage/export', soon(), { path });
export const cancelWork = (client: Client) => client.remove('/client/storage/work');

/** Where the data is, and the way to another place. */
export type DataPlace = Schemas['DataPlace'];
export type DataMove = Schemas['DataMove'];
export type MovePlan = Schemas['MovePlan'];

/** Answered while the data is moved, too, when nothing else is; nothing tells of it, so it is asked for again and again. */
export const dataPlace = (client: Client, signal: AbortSignal) =>
  limited((either) => client.json<DataPlace>('/client/storage/move', either), signal, patience);
/** The whole directory is looked at, which takes as long as the disk does. */
export const checkMove = (client: Client, path: string, signal: AbortSignal) =>
  client.json<MovePlan>('/client/storage/move/check', signal, { path });
export const moveData = (client: Client, path: string, stopTurns: boolean, signal: AbortSignal) =>
  client.json<DataMove>('/client/storage/move', signal, { path, stopTurns });
export const cancelMove = (client: Client) => client.remove('/client/storage/move');
/** What is to stay is proven first, which takes as long as the disk does. */
export const deleteOldData = (client: Client) => client.remove('/client/storage/move/old', unlimited());
