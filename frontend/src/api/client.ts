import { surface } from '../shell/wails';
import { ApiError, problem } from './errors';
import { limited } from './limit';
import type {
  Agent,
  AgentList,
  Answer,
  Directory,
  EntryPage,
  Event,
  EventBatch,
  Hello,
  NewSession,
  Page,
  Request,
  Session,
  SessionPatch,
  TestReport,
  Turn,
} from './records';

// All calls of the client API. URLs are relative: the same code runs in the window, where the routes are mounted beside the
// assets and need no token, and in a browser on loopback, where the link's one-time code is exchanged for one.

const tokenKey = 'deskhand.token';

/** The parts of the page that the client touches, so that a test can give others. */
export interface Surroundings {
  fetch: typeof fetch;
  surface: string;
  storage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
}

interface Call {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  body?: unknown;
  signal?: AbortSignal;
  /** Lets the request outlive the page: for what is saved at the last moment. */
  keepalive?: boolean;
}

export class Client {
  #fetch: typeof fetch;
  #storage: Surroundings['storage'];
  #surface: string;
  #questionListeners = new Set<(question: Request) => void>();

  constructor(around: Partial<Surroundings> = {}) {
    this.#fetch = around.fetch ?? globalThis.fetch.bind(globalThis);
    this.#storage = around.storage ?? sessionStorage;
    this.#surface = around.surface ?? surface();
  }

  /** Exchanges the code of a link for a token; false when the fragment holds none. */
  async login(fragment: string): Promise<boolean> {
    const code = new URLSearchParams(fragment.replace(/^#/, '')).get('code');
    if (!code) return false;
    // A token of an earlier start would be refused before the code is looked at.
    this.#storage.removeItem(tokenKey);
    const { token } = await this.#json<{ token: string }>('/client/login', {
      method: 'POST',
      body: { code },
    });
    this.#storage.setItem(tokenKey, token);
    return true;
  }

  hello = (signal?: AbortSignal) => this.#json<Hello>('/client/hello', { ...when({ signal }) });
  /** The agents; fresh has the server read the login shell anew, which takes seconds. */
  agents = (signal?: AbortSignal, all?: boolean, fresh?: boolean) =>
    this.#json<AgentList>(`/client/agents${search({ all, fresh })}`, { ...when({ signal }) });
  inbox = (signal?: AbortSignal) => this.#list<Request>('/client/inbox', signal);

  events(after: { gen: string; seq: number } | undefined, wait: number, signal: AbortSignal) {
    const query = after ? search({ gen: after.gen, after: after.seq, wait }) : '';
    return this.#json<EventBatch>(`/client/events${query}`, { signal });
  }

  async sessions(
    page: { limit?: number; before?: string; archived?: boolean } = {},
    signal?: AbortSignal,
  ): Promise<Page<Session>> {
    const path = `/client/sessions${search(page)}`;
    const { items, next } = await this.#json<{ items: Session[] | null; next?: string }>(path, {
      ...when({ signal }),
    });
    return { items: items ?? [], ...when({ next: next === '' ? undefined : next }) };
  }

  session = (id: string) => this.#json<Session>(`/client/sessions/${part(id)}`);
  createSession = (body: NewSession) => this.#json<Session>('/client/sessions', { method: 'POST', body });
  patchSession = (id: string, body: SessionPatch, keepalive = false) =>
    this.#json<Session>(`/client/sessions/${part(id)}`, { method: 'PATCH', body, keepalive });

  async entries(id: string, before?: number, limit = 200, signal?: AbortSignal): Promise<EntryPage> {
    const path = `/client/sessions/${part(id)}/entries${search({ before, limit })}`;
    const page = await this.#json<{ [K in keyof EntryPage]: EntryPage[K] | null }>(path, {
      ...when({ signal }),
    });
    return {
      items: page.items ?? [],
      turns: page.turns ?? [],
      requests: page.requests ?? [],
      ...when({ next: page.next ?? undefined }),
    };
  }

  entryText(id: string, entry: string, signal?: AbortSignal): Promise<string> {
    const path = `/client/sessions/${part(id)}/entries/${part(entry)}/text`;
    return this.#send(path, { ...when({ signal }) }, (answer) => answer.text());
  }

  prompt = (id: string, message: string) =>
    this.#json<{ turn: Turn | string }>(`/client/sessions/${part(id)}/prompt`, {
      method: 'POST',
      body: { message },
    });
  cancel = (id: string) => this.#done(`/client/sessions/${part(id)}/cancel`);
  restart = (id: string) => this.#done(`/client/sessions/${part(id)}/restart`);
  setConfig = (id: string, option: string, value: string | boolean) =>
    this.#json<Session>(`/client/sessions/${part(id)}/config`, {
      method: 'POST',
      body: { id: option, value },
    });

  // Agents. How far an installation has come is told by events; these answer as soon as it has begun, or is over.

  install = (id: string, version?: string) =>
    this.#json<Agent>(`/client/agents/${part(id)}/install`, { method: 'POST', body: when({ version }) });
  cancelInstall = (id: string) => this.#done(`/client/agents/${part(id)}/install`, undefined, 'DELETE');
  rollback = (id: string) => this.#json<Agent>(`/client/agents/${part(id)}/rollback`, { method: 'POST' });
  removeAgent = (id: string) => this.#done(`/client/agents/${part(id)}`, undefined, 'DELETE');
  /** Starts the agent for once. It takes as long as the agent does; the end of the signal ends it. */
  testAgent = (id: string, signal: AbortSignal) =>
    this.#json<TestReport>(`/client/agents/${part(id)}/test`, { method: 'POST', signal });

  directories = (path?: string, signal?: AbortSignal) =>
    this.#json<Directory>(`/client/directories${search({ path })}`, { ...when({ signal }) }).then((at) => ({
      ...at,
      items: (at.items as Directory['items'] | null) ?? [],
    }));

  answer = (request: string, body: Answer) => this.#done(`/client/requests/${part(request)}/answer`, body);

  // Questions keep the names that programs around them have always used, over the routes of requests.

  /** Calls back for every question or form that begins to wait; the returned function ends it. */
  onQuestion(listener: (question: Request) => void): () => void {
    this.#questionListeners.add(listener);
    return () => this.#questionListeners.delete(listener);
  }

  replyQuestion = (request: string, answers: string[][]) => this.answer(request, { answers });
  rejectQuestion = (request: string) => this.answer(request, { reject: true });

  /** Passes the feed's events to those who asked for one kind of them. */
  deliver(events: readonly Event[]): void {
    for (const event of events) {
      if (event.type !== 'request.upsert') continue;
      const request = event.data as Request;
      if (request.status !== 'requested' || (request.kind !== 'question' && request.kind !== 'form'))
        continue;
      for (const listener of this.#questionListeners) listener(request);
    }
  }

  async #list<T>(path: string, signal?: AbortSignal): Promise<T[]> {
    const { items } = await this.#json<{ items: T[] | null }>(path, { ...when({ signal }) });
    return items ?? [];
  }

  #done(path: string, body?: unknown, method: 'POST' | 'DELETE' = 'POST'): Promise<void> {
    return this.#send(path, { method, ...when({ body }) }, async (answer) => {
      await answer.arrayBuffer(); // nothing, but until it has ended the connection is taken
    });
  }

  #json<T>(path: string, call: Call = {}): Promise<T> {
    return this.#send(path, call, async (answer) => {
      try {
        return (await answer.json()) as T;
      } catch (thrown) {
        throw thrown instanceof SyntaxError
          ? new ApiError('protocol', {}, answer.status, thrown.message)
          : thrown;
      }
    });
  }

  /** Makes a call and reads its answer. Whoever gives a signal limits the time; else it is limited here. */
  #send<T>(path: string, call: Call, read: (answer: Response) => Promise<T>): Promise<T> {
    const run = async (signal: AbortSignal) => {
      try {
        const answer = await this.#fetch(path, this.#request(call, signal));
        if (!answer.ok) throw problem(answer.status, await answer.json().catch(() => undefined));
        return await read(answer);
      } catch (thrown) {
        if (thrown instanceof ApiError) throw thrown;
        if (call.signal?.aborted) throw call.signal.reason;
        if (signal.aborted) throw new ApiError('timeout');
        throw new ApiError('network', {}, 0, thrown instanceof Error ? thrown.message : '');
      }
    };
    return call.signal ? run(call.signal) : limited(run);
  }

  #request(call: Call, signal: AbortSignal): RequestInit {
    // The surface is told so that others can see where an answer was given; it grants nothing.
    const headers = new Headers({ Accept: 'application/json', 'Deskhand-Surface': this.#surface });
    const token = this.#storage.getItem(tokenKey);
    if (token) headers.set('Authorization', `Bearer ${token}`);
    if (call.body !== undefined) headers.set('Content-Type', 'application/json');
    return {
      method: call.method ?? 'GET',
      headers,
      cache: 'no-store',
      signal,
      ...when({
        body: call.body === undefined ? undefined : JSON.stringify(call.body),
        keepalive: call.keepalive || undefined,
      }),
    };
  }
}

function part(id: string): string {
  return encodeURIComponent(id);
}

function search(values: Record<string, string | number | boolean | undefined>): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined && value !== '') query.set(key, String(value));
  }
  const text = query.toString();
  return text ? `?${text}` : '';
}

/** Leaves undefined members out, which optional members of strict types ask for. */
function when<T extends Record<string, unknown>>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
