/** An edit of a queued message that is neither saved nor discarded. */
export class Edit {
  text = $state('');
  /** A save is under way. */
  saving = $state(false);
  /** The last save was refused. */
  failed = $state(false);
  /** The message's text in the queue, as last seen. */
  row: string;

  constructor(
    /** The text before the edit. */
    readonly was: string,
    /** The part of the message that is for the agent's tools; see spoken. */
    readonly block: string,
    /** The queue did not hold the message before the edit. */
    readonly free: boolean,
  ) {
    this.text = this.row = was;
  }
}
