import { SvelteMap } from 'svelte/reactivity';
import type { Client } from '../api/client';
import { asApiError } from '../api/errors';
import type { Answer, Request } from '../api/records';
import type { Conversations } from './conversations.svelte';
import { forgetTyped, forgetTypedBut } from './drafts';
import { late } from './late';
import { t } from '../strings/t';
import type { Toasts } from './toasts.svelte';

/** The requests that wait for an answer, and those of open conversations. */
export class Inbox {
  readonly requests = new SvelteMap<string, Request>();
  /** The waiting requests that were set aside in their conversations. */
  readonly later = new SvelteMap<string, true>();
  /** The requests that wait, the oldest first. */
  readonly waiting = $derived.by(() =>
    [...this.requests.values()]
      .filter((request) => request.status === 'requested')
      .sort((a, b) =>
        a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : a.id < b.id ? -1 : 1,
      ),
  );
  /** How many things wait for the person: the requests, and the conversations that a set-up holds. */
  readonly count = $derived.by(() => this.waiting.length + this.#conversations.held.length);
  readonly #client: Client;
  readonly #toasts: Toasts;
  readonly #conversations: Conversations;

  constructor(client: Client, toasts: Toasts, conversations: Conversations) {
    this.#client = client;
    this.#toasts = toasts;
    this.#conversations = conversations;
  }

  waitingIn(session: string): Request[] {
    return this.waiting.filter((request) => request.session === session);
  }

  /** Takes a request from an event. An answered request is kept only when the page knew it, or when its conversation is open. */
  put(request: Request, open: boolean): void {
    const known = this.requests.has(request.id);
    if (request.status === 'requested' || known || open) this.requests.set(request.id, request);
    if (request.status !== 'requested') {
      this.later.delete(request.id);
      forgetTyped(request.id);
    }
    if (!known && request.status === 'requested' && ['permission', 'trust'].includes(request.kind)) {
      this.#toasts.announce(t('announce.approval', { title: request.title }));
    }
  }

  /** Takes the requests of a page. The page may be older than events that came meanwhile, and no answered request waits again. */
  putPage(requests: readonly Request[]): void {
    for (const request of requests) {
      const answered = (this.requests.get(request.id)?.status ?? 'requested') !== 'requested';
      if (!answered || request.status !== 'requested') this.requests.set(request.id, request);
    }
  }

  /** Takes all requests that wait, after a gap in the feed. */
  replace(waiting: readonly Request[]): void {
    const open = new Set(waiting.map((request) => request.id));
    for (const request of this.requests.values()) {
      // Either the request was answered during the gap, and no page has told how. Or the request is asked again: an answer that had not
      // reached its agent when the program ended is wanted anew.
      if ((request.status === 'requested') !== open.has(request.id)) this.requests.delete(request.id);
    }
    forgetTypedBut(open);
    this.putPage(waiting);
  }

  /** Forgets the requests of a conversation that was deleted. */
  dropSession(session: string): void {
    for (const request of [...this.requests.values()]) {
      if (request.session !== session) continue;
      this.requests.delete(request.id);
      this.later.delete(request.id);
    }
  }

  /** Forgets the answered requests of a conversation that is no longer open. */
  dropAnswered(session: string): void {
    for (const request of [...this.requests.values()]) {
      if (request.session === session && request.status !== 'requested') this.requests.delete(request.id);
    }
  }

  /**
   * Answers a request. The first answer wins, wherever it is given; answer returns false, and tells the person, when another answer was
   * first. Any other failure is thrown, and shown too unless quiet is set by a caller that shows the failure itself.
   */
  async answer(request: Request, answer: Answer, quiet = false): Promise<boolean> {
    try {
      if (request.kind === 'question') {
        if (answer.answers) await this.#client.replyQuestion(request, answer.answers);
        else await this.#client.rejectQuestion(request);
      } else {
        await this.#client.answer(request.id, answer);
      }
      return true;
    } catch (thrown) {
      const error = asApiError(thrown);
      if (error.code !== 'request.resolved') {
        if (!quiet) this.#toasts.fail(error);
        throw error;
      }
      this.#toasts.show({ text: late(error), tone: 'danger' });
      return false;
    }
  }
}
