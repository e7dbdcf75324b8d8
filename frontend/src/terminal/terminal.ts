import type { Client } from '../api/client';
import { asApiError } from '../api/errors';
import { backOff, limited } from '../api/limit';

// The wire of an embedded terminal: what the program writes comes by one held request after the other, numbered by bytes, and what
// is typed goes out in order, one request at a time, all that was typed meanwhile with the next.
//
// A program asks its terminal things by what it writes (where the cursor is, which colours there are), and the screen answers by
// typing. What an earlier screen has shown was answered then: shown anew it is shown as such, or the program would get letters that
// nobody has typed.

export const holdSeconds = 25;
const longestPause = 5_000;
const largestInput = 16 << 10;

/** What shows it. */
export interface TerminalScreen {
  /** Takes output; the next is asked for when it has been taken. again: another screen has shown it, and answered it. */
  write(bytes: Uint8Array, again: boolean): Promise<void>;
  /** Output was dropped before anybody read it. */
  skipped(): void;
  /** Whether the server answers. */
  link(live: boolean): void;
  /** The program is gone, and nothing more comes. */
  ended(exitCode: number | undefined): void;
  /** What was typed did not arrive. */
  refused(thrown: unknown): void;
}

/** Whether that is what a screen answers a program by itself: where the cursor is, what it is, which colours there are,
 *  whether it has the focus. */
export const isReply = (text: string) =>
  text.startsWith('\x1b') &&
  /^(?:\[[IO]$|\[[?>=]?[\d;]*(?:[cnRx]|\$y)|\[\d+(?:;\d+)*t|[\]P].)/.test(text.slice(1));

export class TerminalLink {
  #client: Client;
  #id: string;
  #screen: TerminalScreen;
  #over = new AbortController();
  #typed: Uint8Array<ArrayBuffer>[] = [];
  #sending = false;

  constructor(client: Client, id: string, screen: TerminalScreen) {
    this.#client = client;
    this.#id = id;
    this.#screen = screen;
  }

  /** Reads until the program ends, or close. */
  async run(): Promise<void> {
    let next = 0;
    let seen: number | undefined;
    let failures = 0;
    const { signal } = this.#over;
    while (!signal.aborted) {
      try {
        const output = await limited(
          (limit) => this.#client.terminal(this.#id, next, holdSeconds, limit),
          signal,
        );
        if (failures > 0) this.#screen.link(true);
        failures = 0;
        const bytes = decode(output.data);
        if (output.from > next) this.#screen.skipped();
        seen ??= output.seen;
        const before = Math.min(Math.max(seen - output.from, 0), bytes.length);
        if (before > 0) await this.#screen.write(bytes.subarray(0, before), true);
        if (before < bytes.length) await this.#screen.write(bytes.subarray(before), false);
        next = output.next;
        if (!output.exited) continue;
        this.#stop();
        this.#screen.ended(output.exitCode);
        return;
      } catch (thrown) {
        if (signal.aborted) return;
        const { status } = asApiError(thrown);
        if (status >= 400 && status < 500) {
          this.#stop(); // there is no such terminal any more
          this.#screen.ended(undefined);
          return;
        }
        if (failures === 0) this.#screen.link(false);
        await this.#pause(backOff(failures++, longestPause));
      }
    }
  }

  /** Sends what was typed. */
  type(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#over.signal.aborted) return;
    for (let at = 0; at < bytes.length; at += largestInput) {
      this.#typed.push(bytes.slice(at, at + largestInput));
    }
    if (!this.#sending) void this.#flush();
  }

  /** Tells the program how much room it has. Nothing is lost when that fails: the next change tells it again. */
  async resize(cols: number, rows: number): Promise<void> {
    if (this.#over.signal.aborted) return;
    await this.#client.terminalSize(this.#id, cols, rows).catch(() => undefined);
  }

  close(): void {
    this.#stop();
  }

  #stop(): void {
    this.#over.abort();
    this.#typed = [];
  }

  async #flush(): Promise<void> {
    this.#sending = true;
    while (this.#typed.length > 0) {
      const bytes = this.#take();
      try {
        await this.#client.terminalInput(this.#id, bytes);
      } catch (thrown) {
        // What follows would be the rest of a word that never began.
        this.#typed = [];
        if (!this.#over.signal.aborted) this.#screen.refused(thrown);
      }
    }
    this.#sending = false;
  }

  /** All that was typed, as far as one request takes it. */
  #take(): Uint8Array<ArrayBuffer> {
    let size = 0;
    let count = 0;
    for (const one of this.#typed) {
      if (count > 0 && size + one.length > largestInput) break;
      size += one.length;
      count++;
    }
    const all = new Uint8Array(size);
    let at = 0;
    for (const one of this.#typed.splice(0, count)) {
      all.set(one, at);
      at += one.length;
    }
    return all;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#over.signal.addEventListener('abort', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

export function decode(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

/** The bytes of a string that holds one byte a character. */
export function latin(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (char) => char.charCodeAt(0) & 0xff);
}
