import type { Client } from '../api/client';
import { limited, unlimited } from '../api/limit';
import type { components } from '../api/schema';

// The calls of the client API that only the settings make.

type Schemas = components['schemas'];

/** An API token that a person has made. */
export type Token = Schemas['Token'];
export type NewToken = Schemas['NewToken'];
/** A new token with its secret, which the server shows only once. */
export type MadeToken = Schemas['MadeToken'];
export type Call = Schemas['Call'];
export type LocalApi = Schemas['LocalAPI'];

/** The time limit of short calls. Callers end long calls by their signal. */
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

/** Returns the calls after a number, the oldest first; without a number, the last calls. */
export async function audit(client: Client, after: number, limit: number, signal: AbortSignal) {
  const { items, kept } = await client.json<{ items: Call[] | null; kept: number }>(
    `/client/audit?after=${after}&limit=${limit}`,
    signal,
  );
  return { items: items ?? [], kept };
}

/** A maintenance job that runs or has ended. */
export type Work = Schemas['Work'];
export type StoragePart = Schemas['StoragePart'];

/** Lists the parts of the data directory, the largest first. The call lasts as long as the disk takes. */
export async function storageParts(client: Client, signal: AbortSignal): Promise<StoragePart[]> {
  const { items } = await client.json<{ items: StoragePart[] | null }>('/client/storage/parts', signal);
  return items ?? [];
}
/** The progress of these jobs is a part of the storage record. */
export const compact = (client: Client) => client.json<Work>('/client/storage/compact', soon(), {});
export const exportAll = (client: Client, path: string) =>
  client.json<Work>('/client/storage/export', soon(), { path });
export const cancelWork = (client: Client) => client.remove('/client/storage/work');

/** The path of the data, and moving the data. */
export type DataPlace = Schemas['DataPlace'];
export type DataMove = Schemas['DataMove'];
export type MovePlan = Schemas['MovePlan'];

/** The server answers this call even while the data moves, when it answers no other. There is no event, so callers repeat the call. */
export const dataPlace = (client: Client, signal: AbortSignal) =>
  limited((either) => client.json<DataPlace>('/client/storage/move', either), signal, patience);
/** Checks a move. The server reads the whole directory, which lasts as long as the disk takes. */
export const checkMove = (client: Client, path: string, signal: AbortSignal) =>
  client.json<MovePlan>('/client/storage/move/check', signal, { path });
export const moveData = (client: Client, path: string, stopTurns: boolean, signal: AbortSignal) =>
  client.json<DataMove>('/client/storage/move', signal, { path, stopTurns });
export const cancelMove = (client: Client) => client.remove('/client/storage/move');
/** The server first verifies the data that stays, which lasts as long as the disk takes. */
export const deleteOldData = (client: Client) => client.remove('/client/storage/move/old', unlimited());
