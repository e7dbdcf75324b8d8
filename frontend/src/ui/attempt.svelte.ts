/**
 * Work behind a button that also ends it: a second press aborts the work. The owner calls stop when unmounted. failed gets the error,
 * unless the person aborted the work.
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
