import type { Client } from './client';
import { unlimited } from './limit';
import type { components } from './schema';

// Records and calls of the Discord surface. The file is loaded with the settings that show Discord.

type Schemas = components['schemas'];

/** The bot, the people that the bot answers, and the bound channels. */
export type DiscordState = Schemas['DiscordState'];
export type DiscordBinding = Schemas['DiscordBinding'];
export type DiscordSetup = Schemas['DiscordSetup'];
export type DiscordBind = Schemas['DiscordBind'];
/** A condition that must hold for the surface to work, and whether it does. */
export type DiscordCheck = Schemas['DiscordCheck'];
export type DiscordServer = Schemas['DiscordServer'];
export type DiscordChannel = Schemas['DiscordChannel'];

const path = '/client/discord';

// Calls that ask Discord have no time limit here: the server has its own.

export const discordState = (client: Client, signal = unlimited()) => client.json<DiscordState>(path, signal);
export const setUpDiscord = (client: Client, body: DiscordSetup) =>
  client.json<DiscordState>(path, unlimited(), body, 'PUT');
/** Switches the surface off and removes the token and the bindings. */
export const forgetDiscord = (client: Client) => client.remove(path);

export async function checkDiscord(client: Client, signal: AbortSignal): Promise<DiscordCheck[]> {
  const { items } = await client.json<{ items: DiscordCheck[] | null }>(`${path}/check`, signal, {});
  return items ?? [];
}

/** Lists the channels that can be bound. */
export async function discordServers(client: Client, signal: AbortSignal): Promise<DiscordServer[]> {
  const { items } = await client.json<{ items: DiscordServer[] | null }>(`${path}/channels`, signal);
  return items ?? [];
}

export const bindDiscord = (client: Client, channel: string, body: DiscordBind) =>
  client.json<DiscordBinding>(`${path}/bindings/${encodeURIComponent(channel)}`, unlimited(), body, 'PUT');
export const unbindDiscord = (client: Client, channel: string) =>
  client.remove(`${path}/bindings/${encodeURIComponent(channel)}`);
