/** A change of a queued message that is neither saved nor put away. */
export class Edit {
  text = $state('');
  /** A save is on its way. */
  saving = $state(false);
  /** The last one was refused. */
  failed = $state(false);
  /** What its row says, as far as that was seen. */
  row: string;

  constructor(
    /** What it began with. */
    readonly was: string,
    /** What of the message is no text for people. */
    readonly block: string,
    /** The row was not held before. */
    readonly free: boolean,
  ) {
    this.text = this.row = was;
  }
}
