// What stands in the composer, saved while it is typed and never overwritten by what comes back.

import { isRefused } from '../api/errors';
import { backOff } from '../api/limit';
import { store } from '../ui/storage';
import type { When } from './queue';

/** So much typing is lost at the most. Not counted from the last key: who types without a pause would have nothing saved. */
const after = 500;
/** The longest pause before a save that failed is tried again. */
const longest = 10_000;
/** What is told so soon after a message has arrived may still be of before. */
const stale = 1_000;

/** Writes a draft; `last` when the page is going and the request must outlive it. */
export type Save = (text: string, last: boolean) => Promise<void>;

export class Draft {
  text: string;
  /** Has the text shown where it stands now: a composer that is gone may still change it, for what it was sending has arrived. */
  show: (text: string) => void = () => undefined;
  /** Hears that what was being sent has arrived, or why not: it may have been sent by a composer that is gone. */
  ended: (fault: string) => void = () => undefined;
  /** Hears why a save failed, and of nothing when there is no reason to worry any more. */
  failed: (why?: unknown) => void = () => undefined;
  /**
   * Keeps what no request can take along at the end of the page, and what the server may have in place of it. It is told when that has
   * arrived all the same.
   */
  keep: (text: string, befores: readonly string[]) => (() => void) | undefined = () => undefined;
  #sending: string | undefined;
  /** Nothing was saved since the message began its way, or was about to be: what the server had then is known. */
  #still = false;
  /** What was told while it was on its way. */
  #meanwhile: string[] = [];
  /** What the server tells once it has taken the message out; until then, what it tells is set aside. */
  #awaited: string | undefined;
  #aside: string | undefined;
  #wait: ReturnType<typeof setTimeout> | undefined;
  /** What was sent meanwhile, and goes after it. */
  again: { when: When; text: string } | undefined;
  /** What the server has, or is about to. */
  #saved: string;
  /** What it had when it was last heard of. */
  #known: string;
  #save: Save;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Tries what has failed again, where nothing is typed before. */
  #retry: ReturnType<typeof setTimeout> | undefined;
  /** Texts that were sent and not heard of again, oldest first. */
  #echoes: string[] = [];
  #chain: Promise<void> = Promise.resolve();
  /** How many saves have not ended. */
  #under = 0;
  /** How many saves in a row have failed. */
  #failures = 0;

  /** What stands between a message that was given back and what was written since. */
  #between: string;

  constructor(text: string, save: Save, between = '\n\n') {
    this.text = text;
    this.#saved = this.#known = text;
    this.#save = save;
    this.#between = between;
  }

  /** Whether something here is not saved yet. */
  get dirty(): boolean {
    return this.text !== this.#saved;
  }

  /** The text that is on its way as a message: it is not saved, for it would come back as one that was never sent. */
  get sending(): string | undefined {
    return this.#sending;
  }

  /** Nothing of it can be lost any more: it can be made anew from what the server has. */
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

  /** The text goes as a message: it is not saved for now. */
  begin(): void {
    this.#hold();
    const aside = this.#heard();
    this.#sending = this.text;
    this.#still = this.#under === 0;
    this.#meanwhile = aside === undefined ? [] : [aside];
  }

  /** The message could not be sent. What stands here is saved again. */
  kept(): void {
    this.#end();
    this.type(this.text);
    this.show(this.text);
  }

  /**
   * The message has arrived, and `rest` is what was written since. The server has taken it out of the draft by itself; `left` tells what
   * it has then, of what was saved. That is not written once more: an agent that cannot be started gives the message back at once, and it
   * would be wiped.
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

  /** Takes what was told while the message was on its way. */
  #end(): void {
    this.#sending = undefined;
    for (const text of this.#meanwhile) this.told(text);
  }

  /** Nothing of before is told any more. */
  #heard(): string | undefined {
    clearTimeout(this.#wait);
    const aside = this.#aside;
    this.#awaited = this.#aside = undefined;
    return aside;
  }

  /**
   * The server tells of a draft: an echo of ours, or something new, of another window or given back by an agent. Only the latter is taken,
   * and only while nothing here would be lost; where the server had nothing, it is put before what is written here, which would be
   * saved over it. Returns whether the text changed.
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

  /** Saves at once what is not saved, one after the other. */
  flush(last = false): Promise<void> {
    this.#hold();
    // At the end of the page nobody knows whether it still arrives.
    if (!last && this.text === this.#sending) return this.#chain;
    // What is under way ends with its page, and goes once more; but not what a message may have taken out meanwhile.
    if (!this.dirty && !(last && this.#under > 0 && this.#sending === undefined)) return this.#chain;
    // What a message was given back to would be written over.
    if (this.#awaited !== undefined && !last) return this.#chain;
    this.#still = false;
    const text = this.text;
    const before = this.#saved;
    this.#saved = text;
    // From now on, and not when its turn has come: what is told meanwhile is older than this.
    this.#echoes.push(text);
    this.#under++;
    const write = async () => {
      try {
        // What is being sent would come back as though it had not been.
        const unsent = last && this.#sending === undefined;
        const arrived = unsent ? this.keep(text, [this.#known, ...this.#echoes]) : undefined;
        await this.#save(text, last && !arrived);
        this.#known = text;
        arrived?.();
        this.#works();
      } catch (thrown) {
        // It stands in the composer still, and is tried again by itself; what was refused as it is waits for the next change.
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
    // The page does not wait for what is under way.
    this.#chain = last ? write() : this.#chain.then(write);
    return this.#chain;
  }
}

/** Those whose composer is gone and that are not saved yet, or on their way, by conversation. */
const left = new Map<string, Draft>();

/**
 * The draft of a conversation: the one that was left while it could not be saved, or was being sent, else what the server has. `since` tells
 * when something last happened in the conversation: not when its draft is saved, but whenever something is sent.
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
  draft.type(draft.text); // tries again by itself
  return draft;
}

// What is sent as a page ends may be 64 KiB, all of it taken together; more is refused as though there were no line (the Fetch standard,
// HTTP-network-or-cache fetch). A longer draft is sent in the ordinary way, which seldom arrives then, and kept here for the next page.

const mostLast = 60_000;
const key = 'deskhand.draft';

function keep(
  session: string,
  text: string,
  befores: readonly string[],
  since: string,
): (() => void) | undefined {
  if (new Blob([JSON.stringify(text)]).size <= mostLast) return undefined;
  const others = befores.filter((before) => before !== text);
  const kept = JSON.stringify([session, since, text, ...others]);
  store(key, kept);
  return () => {
    if (localStorage.getItem(key) === kept) localStorage.removeItem(key);
  };
}

/**
 * What was kept of a conversation, once; nothing where the server has something else than it may have had then: that is newer. Nothing is
 * what it has as well after the same was sent: then nothing may have happened in the conversation since.
 */
function take(session: string, told: string, since: string): string | undefined {
  try {
    const [of, then, text, ...befores] = JSON.parse(localStorage.getItem(key) ?? '') as unknown[];
    if (of !== session) return undefined;
    localStorage.removeItem(key);
    if (typeof text !== 'string' || !befores.includes(told)) return undefined;
    return told !== '' || then === since ? text : undefined;
  } catch {
    return undefined;
  }
}

/** The composer is gone; what is not saved stays, and is tried again, at the end of the page at the latest. */
export function leaveDraft(session: string, draft: Draft): Promise<void> {
  left.set(session, draft);
  window.addEventListener('pagehide', leavePage); // once, however often it is said
  return settle(session, draft, false);
}

function leavePage(): void {
  for (const [session, draft] of left) void settle(session, draft, true);
}

async function settle(session: string, draft: Draft, last: boolean): Promise<void> {
  await draft.flush(last);
  if (draft.settled && left.get(session) === draft) left.delete(session);
}
