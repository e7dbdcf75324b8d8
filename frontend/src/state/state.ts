import { Client } from '../api/client';
import { Catalogue } from './catalogue.svelte';
import { Logins } from './logins.svelte';
import { Machine } from './machine.svelte';
import { Preferences } from './preferences.svelte';
import { Remotes } from './remotes.svelte';
import { Rules } from './rules.svelte';
import { Toasts } from './toasts.svelte';
import { WallClock } from './wallclock.svelte';

/** Builds the state of one page on a client of the API. Each class gets the classes that it needs; none reaches for a global. */
export function compose(client: Client) {
  const toasts = new Toasts();
  const wallClock = new WallClock();
  const machine = new Machine(client);
  const preferences = new Preferences(client);
  const remotes = new Remotes(client);
  const rules = new Rules(client, toasts, wallClock);
  const catalogue = new Catalogue(client, toasts);
  const logins = new Logins(client);
  return { client, toasts, wallClock, machine, preferences, remotes, rules, catalogue, logins };
}

/** The state of this page. */
export const shared = compose(new Client());
export const { client, toasts, wallClock, machine, preferences, remotes, rules, catalogue, logins } = shared;
