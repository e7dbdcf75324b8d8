// The text in the composer. The draft is saved while a person types, and the server's copy never overwrites newer text.

import { isRefused } from '../api/errors';
import { backOff } from '../api/limit';
import { store } from '../ui/storage';
import type { When } from '../state/queue';

/**
 * Milliseconds from the first unsaved keystroke to the save. A delay from the last keystroke would save nothing while a person types
 * without a pause.
 */
const after = 500;
/** The longest pause before a failed save is tried again. */
const longest = 10_000;
/** For so many milliseconds after a message has arrived, a text from the server may be older than the message. */
const stale = 1_000;

/** Saves a draft. last means that the page is ending and the request must outlive the page. */
export type Save = (text: string, last: boolean) => Promise<void>;

export class Draft {
  text: string;
  /**
   * Shows the text. A draft whose composer was unmounted calls the next composer's show when the message that it was sending has arrived.
   */
  show: (text: string) => void = () => undefined;
  /**
   * Called when the message has arrived (with an empty string) or was refused (with the reason). The composer that sent the message may be
   * gone.
   */
  ended: (fault: string) => void = () => undefined;
  /** Called with the reason when a save failed, and without one when a later save has succeeded. */
  failed: (why?: unknown) => void = () => undefined;
  /**
   * Stores a text in localStorage when it is too long for the last request of a page. befores are the texts that the server may hold
   * instead. The returned function removes the stored text; the draft calls it when the request has arrived after all.
   */
  keep: (text: string, befores: readonly string[]) => (() => void) | undefined = () => undefined;
  #sending: string | undefined;
  /** No save was under way when the message was sent, nor began since. Then the server's draft at that moment is known. */
  #still = false;
  /** Texts that the server has reported since the message was sent. */
  #meanwhile: string[] = [];
  /** The draft that the server will report once it has removed the message. Until then other texts go to #aside. */
  #awaited: string | undefined;
  #aside: string | undefined;
  #wait: ReturnType<typeof setTimeout> | undefined;
  /** A message that was sent while another was under way. It is sent next. */
  again: { when: When; text: string } | undefined;
  /** The text that the server has, or will have after the saves that are under way. */
  #saved: string;
  /** The text that the server had when it was last heard. */
  #known: string;
  #save: Save;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The timer that retries a failed save. */
  #retry: ReturnType<typeof setTimeout> | undefined;
  /** Saved texts that the server has not reported back yet, oldest first. */
  #echoes: string[] = [];
  #chain: Promise<void> = Promise.resolve();
  /** Saves under way. */
  #under = 0;
  /** Failed saves in a row. */
  #failures = 0;

  /** The separator between a returned message and the text that was typed since. */
  #between: string;

  constructor(text: string, save: Save, between = '\n\n') {
    this.text = text;
    this.#saved = this.#known = text;
    this.#save = save;
    this.#between = between;
  }

  /** Reports whether the text differs from the saved text. */
  get dirty(): boolean {
    return this.text !== this.#saved;
  }

  /** The text that is being sent as a message. The draft does not save this text: the server would return it as an unsent draft. */
  get sending(): string | undefined {
    return this.#sending;
  }

  /** Reports whether the draft can be dropped, because the server has everything. */
  get settled(): boolean {
    return !this.dirty && this.#under === 0 && this.#sending === undefined && this.#awaited === undefined;
  }

  type(text: string): void {
    this.text = text;
    if (!this.dirty) {
      this.#hold();
      this.#works();
    } else this.#timer ??= setTimeout(() => void this.flush(), after);
  }

  #works(): void {
    if (this.#failures > 0) this.failed();
    this.#failures = 0;
  }

  #hold(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#retry);
    this.#timer = undefined;
  }

  /** Marks the text as being sent. Until the answer the text is not saved. */
  begin(): void {
    this.#hold();
    const aside = this.#heard();
    this.#sending = this.text;
    this.#still = this.#under === 0;
    this.#meanwhile = aside === undefined ? [] : [aside];
  }

  /** The message could not be sent: the text is a draft again and is saved. */
  kept(): void {
    this.#end();
    this.type(this.text);
    this.show(this.text);
  }

  /**
   * The message has arrived; rest is the text that was typed since. The server removes the message from its draft, and left returns the
   * remainder that the server then holds. The remainder is not saved again: an agent that cannot start returns the message at once, and a
   * save would overwrite it.
   */
  arrived(rest: string, left: (saved: string) => string | undefined): void {
    const now = this.#still ? left(this.#saved) : undefined;
    this.text = rest;
    if (now === undefined) this.#end();
    else {
      const at = this.#meanwhile.indexOf(now);
      const news = now !== this.#saved || this.#echoes.length > 0;
      this.#saved = this.#known = now;
      this.#echoes = [];
      this.#meanwhile.splice(0, at + 1);
      if (at >= 0 || !news) this.#end();
      else {
        this.#sending = undefined;
        this.#awaited = now;
        this.#wait = setTimeout(() => {
          const back = this.#heard();
          if (back !== undefined) this.told(back);
          this.type(this.text);
          this.show(this.text);
        }, stale);
      }
    }
    this.type(this.text);
    this.show(this.text);
    void this.flush();
  }

  /** Ends the sending, and applies the texts that the server has reported meanwhile. */
  #end(): void {
    this.#sending = undefined;
    for (const text of this.#meanwhile) this.told(text);
  }

  /** Stops waiting for the awaited text. It returns the last text that was set aside. */
  #heard(): string | undefined {
    clearTimeout(this.#wait);
    const aside = this.#aside;
    this.#awaited = this.#aside = undefined;
    return aside;
  }

  /**
   * Receives the server's draft. The text is either an echo of a save, or new: typed in another window, or returned by an agent. A new text
   * replaces the local text only where the local text is saved. Where the server had an empty draft, the new text is put before unsaved
   * local text, which a later save would otherwise write over it. told returns true when the local text changed.
   */
  told(text: string): boolean {
    if (this.#awaited !== undefined) {
      if (text !== this.#awaited) {
        this.#aside = text;
        return false;
      }
      this.#heard();
      this.type(this.text);
    }
    this.#known = text;
    const echo = this.#echoes.indexOf(text);
    if (echo >= 0) this.#echoes.splice(0, echo + 1);
    else if (this.#sending !== undefined) this.#meanwhile.push(text);
    if (this.#sending !== undefined) return false;
    if (echo >= 0 || this.#echoes.length > 0) return false;
    if (this.dirty) {
      if (this.#saved !== '' || text === '') return false;
      this.#saved = text;
      this.type(text + this.#between + this.text);
      return true;
    }
    this.#saved = text;
    if (text === this.text) return false;
    this.text = text;
    return true;
  }

  /** Saves the text now. Saves run one after the other. */
  flush(last = false): Promise<void> {
    this.#hold();
    // At the end of the page the text is saved even while it is being sent, because the sending may fail.
    if (!last && this.text === this.#sending) return this.#chain;
    // A save that is under way ends with its page, so the last flush repeats it; but not while a message is being sent, because the message
    // may have removed that text.
    if (!this.dirty && !(last && this.#under > 0 && this.#sending === undefined)) return this.#chain;
    // Until the awaited text has come, a save could overwrite a returned message.
    if (this.#awaited !== undefined && !last) return this.#chain;
    this.#still = false;
    const text = this.text;
    const before = this.#saved;
    this.#saved = text;
    // The echo is expected from this moment on, not from the moment of the request: a text that arrives in between is older.
    this.#echoes.push(text);
    this.#under++;
    const write = async () => {
      try {
        // A text that is being sent is not kept: the next page would show it as unsent.
        const unsent = last && this.#sending === undefined;
        const arrived = unsent ? this.keep(text, [this.#known, ...this.#echoes]) : undefined;
        await this.#save(text, last && !arrived);
        this.#known = text;
        arrived?.();
        this.#works();
      } catch (thrown) {
        // The text is still in the composer, and is saved again after a pause. A text that the server refused waits for the next change.
        this.#echoes = this.#echoes.filter((echo) => echo !== text);
        if (this.#saved === text) this.#saved = before;
        this.#failures++;
        this.failed(thrown);
        clearTimeout(this.#retry);
        if (this.dirty && this.#sending === undefined && !isRefused(thrown))
          this.#retry = setTimeout(() => void this.flush(), backOff(this.#failures, longest));
      } finally {
        this.#under--;
      }
    };
    // The last save does not wait for the others.
    this.#chain = last ? write() : this.#chain.then(write);
    return this.#chain;
  }
}

/** Drafts without a composer, by session, that are not saved yet or are being sent. */
const left = new Map<string, Draft>();

/**
 * Returns the draft of a session: the draft that was left unsaved or while it was being sent, otherwise a new one with the server's text.
 * since returns the time of the session's last activity; saving a draft is no activity, sending a message is.
 */
export function draftOf(session: string, text: string, save: Save, since: () => string): Draft {
  const draft = left.get(session);
  left.delete(session);
  if (!draft || draft.settled) {
    const made = new Draft(text, save);
    made.keep = (now, befores) => keep(session, now, befores, since());
    const kept = take(session, text, since());
    if (kept !== undefined) made.type(kept);
    return made;
  }
  draft.type(draft.text); // starts the next try
  return draft;
}

// The requests that a page sends while it ends may have 64 KiB in total; larger ones fail like a lost connection (Fetch standard,
// HTTP-network-or-cache fetch). A longer draft is sent by an ordinary request, which seldom arrives, and is also stored for the next page.

const mostLast = 60_000;
/** The key that older versions used for the draft of any session. */
const oldKey = 'deskhand.draft';

function keyOf(session: string): string {
  return `${oldKey}.${session}`;
}

function keep(
  session: string,
  text: string,
  befores: readonly string[],
  since: string,
): (() => void) | undefined {
  if (new Blob([JSON.stringify(text)]).size <= mostLast) return undefined;
  const others = befores.filter((before) => before !== text);
  const key = keyOf(session);
  const kept = JSON.stringify([session, since, text, ...others]);
  store(key, kept);
  return () => {
    if (localStorage.getItem(key) === kept) localStorage.removeItem(key);
  };
}

/**
 * Returns the stored text of a session, and removes it. It returns undefined when the server's draft is none of the texts that the server
 * may have had, and so is newer. An empty draft may also mean that the text was sent: then the text is returned only if the session had no
 * activity since.
 */
function take(session: string, told: string, since: string): string | undefined {
  try {
    const key = [keyOf(session), oldKey].find((one) => localStorage.getItem(one) !== null) ?? '';
    const [of, then, text, ...befores] = JSON.parse(localStorage.getItem(key) ?? '') as unknown[];
    if (of !== session) return undefined;
    localStorage.removeItem(key);
    if (typeof text !== 'string' || !befores.includes(told)) return undefined;
    return told !== '' || then === since ? text : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps the draft of a composer that was unmounted. An unsaved text is saved again, at the latest when the page ends. */
export function leaveDraft(session: string, draft: Draft): Promise<void> {
  left.set(session, draft);
  window.addEventListener('pagehide', leavePage); // adding the same listener again has no effect
  return settle(session, draft, false);
}

function leavePage(): void {
  for (const [session, draft] of left) void settle(session, draft, true);
}

async function settle(session: string, draft: Draft, last: boolean): Promise<void> {
  await draft.flush(last);
  if (draft.settled && left.get(session) === draft) left.delete(session);
}
