// What stands in the composer, saved while it is typed and never overwritten by what comes back.

/** So much typing is lost at the most. Not counted from the last key: who types without a pause would have nothing saved. */
const after = 500;

/** Writes a draft; `last` when the page is going and the request must outlive it. */
export type Save = (text: string, last: boolean) => Promise<void>;

export class Draft {
  text: string;
  /** What the server has, or is about to. */
  #saved: string;
  #save: Save;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Texts that were sent and not heard of again, oldest first. */
  #echoes: string[] = [];
  #chain: Promise<void> = Promise.resolve();

  constructor(text: string, save: Save) {
    this.text = text;
    this.#saved = text;
    this.#save = save;
  }

  /** Whether something here is not saved yet. */
  get dirty(): boolean {
    return this.text !== this.#saved;
  }

  type(text: string): void {
    this.text = text;
    if (!this.dirty) this.hold();
    else this.#timer ??= setTimeout(() => void this.flush(), after);
  }

  /** Saves nothing for now: the text is being sent. */
  hold(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /**
   * The server tells of a draft: an echo of ours, or a change in another window. Only the latter is taken, and only while nothing
   * here would be lost. Returns whether the text changed.
   */
  told(text: string): boolean {
    const echo = this.#echoes.indexOf(text);
    if (echo >= 0) this.#echoes.splice(0, echo + 1);
    if (echo >= 0 || this.#echoes.length > 0 || this.dirty) return false;
    this.#saved = text;
    if (text === this.text) return false;
    this.text = text;
    return true;
  }

  /** Saves at once what is not saved, one after the other. */
  flush(last = false): Promise<void> {
    this.hold();
    if (!this.dirty) return this.#chain;
    const text = this.text;
    const before = this.#saved;
    this.#saved = text;
    // From now on, and not when its turn has come: what is told meanwhile is older than this.
    this.#echoes.push(text);
    const write = async () => {
      try {
        await this.#save(text, last);
      } catch {
        // It stands in the composer still; the next change, or the end of the page, tries again.
        this.#echoes = this.#echoes.filter((echo) => echo !== text);
        if (this.#saved === text) this.#saved = before;
      }
    };
    // The page does not wait for what is under way.
    this.#chain = last ? write() : this.#chain.then(write);
    return this.#chain;
  }
}
