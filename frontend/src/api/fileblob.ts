import type { Client } from './client';
import { addressOf } from './route';

/** Fetches a file of one of the session's directories. */
export const fileBlob = (client: Client, id: string, path: string, signal?: AbortSignal): Promise<Blob> =>
  client.blob(addressOf('GET /client/sessions/{id}/tree/file', { path: { id }, query: { path } }), signal);

/** Fetches a picture of the web by way of the server: the page itself loads nothing from elsewhere. */
export const webPicture = (client: Client, address: string, signal?: AbortSignal): Promise<Blob> =>
  client.blob(addressOf('GET /client/picture', { query: { address } }), signal);
