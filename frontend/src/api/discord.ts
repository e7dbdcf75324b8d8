import type { Client } from './client';
import { unlimited } from './limit';
import type { components } from './schema';

// The surface of Discord: its records and its calls, which are loaded with the part of the page that shows it.

type Schemas = components['schemas'];

/** The bot, who is heard, and which channels are bound. */
export type DiscordState = Schemas['DiscordState'];
export type DiscordBinding = Schemas['DiscordBinding'];
export type DiscordSetup = Schemas['DiscordSetup'];
export type DiscordBind = Schemas['DiscordBind'];
/** One thing that must be so for the surface to work. */
export type DiscordCheck = Schemas['DiscordCheck'];
export type DiscordServer = Schemas['DiscordServer'];
export type DiscordChannel = Schemas['DiscordChannel'];

const path = '/client/discord';

// Discord answers as soon as it likes; the server ends what takes too long.

export const discordState = (client: Client, signal = unlimited()) => client.json<DiscordState>(path, signal);
export const setUpDiscord = (client: Client, body: DiscordSetup) =>
  client.json<DiscordState>(path, unlimited(), body, 'PUT');
/** Off, without token and bindings. */
export const forgetDiscord = (client: Client) => client.remove(path);

export async function checkDiscord(client: Client, signal: AbortSignal): Promise<DiscordCheck[]> {
  const { items } = await client.json<{ items: DiscordCheck[] | null }>(`${path}/check`, signal, {});
  return items ?? [];
}

/** The channels that could be bound. */
export async function discordServers(client: Client, signal: AbortSignal): Promise<DiscordServer[]> {
  const { items } = await client.json<{ items: DiscordServer[] | null }>(`${path}/channels`, signal);
  return items ?? [];
}

export const bindDiscord = (client: Client, channel: string, body: DiscordBind) =>
  client.json<DiscordBinding>(`${path}/bindings/${encodeURIComponent(channel)}`, unlimited(), body, 'PUT');
export const unbindDiscord = (client: Client, channel: string) =>
  client.remove(`${path}/bindings/${encodeURIComponent(channel)}`);
