import { Client } from '../api/client';
import { Catalogue } from './catalogue.svelte';
import { Comparisons } from './comparisons.svelte';
import { Connection } from './connection.svelte';
import { Conversations } from './conversations.svelte';
import { Inbox } from './inbox.svelte';
import { Lifecycle } from './lifecycle';
import { Logins } from './logins.svelte';
import { Machine } from './machine.svelte';
import { Navigation } from './navigation.svelte';
import { Overlay } from './overlay.svelte';
import { Preferences } from './preferences.svelte';
import { Remotes } from './remotes.svelte';
import { Rules } from './rules.svelte';
import { Server } from './server.svelte';
import { Toasts } from './toasts.svelte';
import { Transcripts } from './transcripts';
import { WallClock } from './wallclock.svelte';

/** Builds the state of one page on a client of the API. Each class gets the classes that it needs; none reaches for a global. */
export function compose(client: Client) {
  const shows = (id: string): boolean => navigation.panes.shows(id);
  const toasts = new Toasts();
  const wallClock = new WallClock();
  const server = new Server();
  const machine = new Machine(client);
  const preferences = new Preferences(client);
  const remotes = new Remotes(client);
  const rules = new Rules(client, toasts, wallClock);
  const catalogue = new Catalogue(client, toasts);
  const comparisons = new Comparisons(client);
  const logins = new Logins(client);
  const overlay = new Overlay();
  const conversations = new Conversations(client, toasts, shows);
  const inbox = new Inbox(client, toasts, conversations);
  const transcripts = new Transcripts(client, toasts, inbox, conversations, shows);
  const navigation = new Navigation(toasts, server, conversations, transcripts);
  const lifecycle = new Lifecycle(client, toasts, conversations, navigation);
  const filled = {
    ...{ client, toasts, server, machine, preferences, remotes, rules, catalogue, logins },
    ...{ comparisons, inbox, conversations, transcripts, navigation },
  };
  return { ...filled, wallClock, overlay, lifecycle, connection: new Connection(filled) };
}

/** The state of this page. */
const shared = compose(new Client());
export const { client, toasts, wallClock, server, machine, preferences, remotes, rules } = shared;
export const { catalogue, comparisons, logins, inbox, conversations, transcripts, navigation, lifecycle } =
  shared;
export const { overlay, connection } = shared;
