import type { Hello } from '../api/records';

/** What the server says of itself when the page begins. */
export class Server {
  hello = $state.raw<Hello | undefined>();
  /** Whether a newer version of the program has changed the data. The server refuses every change then. */
  readonly readOnly = $derived(this.hello?.newer !== undefined);
}
