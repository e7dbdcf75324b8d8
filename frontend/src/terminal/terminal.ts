import type { Client } from '../api/client';
import { asApiError } from '../api/errors';
import { backOff, limited } from '../api/limit';

// The wire of an embedded terminal. The program's output comes by held requests, numbered by bytes. Typed input goes out in order, one
// request at a time; input typed meanwhile goes with the next request.
// Programs ask the terminal questions by escape sequences (the position of the cursor, the colours), and the screen answers as if a person
// typed. An earlier screen has answered the output that it showed; such output is marked as shown again, or the program would get an answer
// twice.

const holdSeconds = 25;
const longestPause = 5_000;
const largestInput = 16 << 10;

/** The view of a terminal. */
interface TerminalScreen {
  /** Shows output, and resolves when the next output may be fetched. again: an earlier screen has shown this output and answered it. */
  write(bytes: Uint8Array, again: boolean): Promise<void>;
  /** The server has dropped output that nobody read in time. */
  skipped(): void;
  /** Reports whether the server answers. */
  link(live: boolean): void;
  /** The program has ended, and no more output comes. */
  ended(exitCode: number | undefined): void;
  /** Typed input did not arrive. */
  refused(thrown: unknown): void;
}

/**
 * Reports whether a text is a screen's own answer to a program: the position of the cursor, the kind of terminal, the colours, the focus.
 */
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

  /** Reads until the program ends, or until close. */
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
          this.#stop(); // the terminal does not exist any more
          this.#screen.ended(undefined);
          return;
        }
        if (failures === 0) this.#screen.link(false);
        await this.#pause(backOff(failures++, longestPause));
      }
    }
  }

  /** Sends typed input. */
  type(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#over.signal.aborted) return;
    for (let at = 0; at < bytes.length; at += largestInput) {
      this.#typed.push(bytes.slice(at, at + largestInput));
    }
    if (!this.#sending) void this.#flush();
  }

  /** Sends the size to the program. A failure is harmless, because the next change sends the size again. */
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
        // Input typed since then would continue a lost word, so it is dropped.
        this.#typed = [];
        if (!this.#over.signal.aborted) this.#screen.refused(thrown);
      }
    }
    this.#sending = false;
  }

  /** Returns the waiting input, up to the size of a request. */
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

function decode(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

/** Returns the bytes of a string with one byte per character. */
export function latin(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (char) => char.charCodeAt(0) & 0xff);
}
