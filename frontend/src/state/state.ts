import { Client } from '../api/client';
import { Toasts } from './toasts.svelte';
import { WallClock } from './wallclock.svelte';

/** Builds the state of one page on a client of the API. Each class gets the classes that it needs; none reaches for a global. */
export function compose(client: Client) {
  const toasts = new Toasts();
  const wallClock = new WallClock();
  return { client, toasts, wallClock };
}

/** The state of this page. */
export const shared = compose(new Client());
export const { client, toasts, wallClock } = shared;
