import type { Hello } from '../api/records';

/** The server's first message to the page, with its version and directories. */
export class Server {
  hello = $state.raw<Hello | undefined>();
  /** Whether a newer version of the program has changed the data. The server refuses every change then. */
  readonly readOnly = $derived(this.hello?.newer !== undefined);
}
