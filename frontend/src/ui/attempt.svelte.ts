/**
 * Work behind a button that ends it as well: a second press aborts what the first began. Who owns it calls stop when going away.
 * failed is told why it came to nothing, unless somebody wanted that.
 */
export class Attempt {
  #asking = $state.raw<AbortController | undefined>();
  #failed: (thrown: unknown) => void;

  constructor(failed: (thrown: unknown) => void) {
    this.#failed = failed;
  }

  get running(): boolean {
    return this.#asking !== undefined;
  }

  async press(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#asking) {
      this.stop();
      return;
    }
    const ours = new AbortController();
    this.#asking = ours;
    try {
      await work(ours.signal);
    } catch (thrown) {
      if (!ours.signal.aborted) this.#failed(thrown);
    } finally {
      this.#asking = undefined;
    }
  }

  stop(): void {
    this.#asking?.abort();
  }
}
