import { surface } from '../shell/wails';
import { ApiError, problem } from './errors';
import { fileNameOf } from './filename';
import { limited, unlimited } from './limit';
import { addressOf, type AnswerOf, type AnyCall, type Call, type Route } from './route';
import { allProjects, scopeOf } from './scope';
import { Tab } from './tab';
import type { NewSite, SitePatch } from './places';
import type {
  AgentDefinition,
  Answer,
  Entry,
  Equipment,
  Event,
  ExportFormat,
  McpServer,
  NewRule,
  NewSession,
  QueueItem,
  QueuePatch,
  Request,
  RulePatch,
  SessionPatch,
  SettingsPatch,
  SkillEntry,
  StartChoice,
} from './records';

// The calls of the client API. URLs are relative, because the same code runs in the window and in a browser on loopback. In the window the
// routes are mounted beside the assets and need no token; in a browser the client exchanges the link's code for a token (see tab.ts).

/** The parts of the page that the client uses. Tests give parts of their own. */
interface Surroundings {
  fetch: typeof fetch;
  surface: string;
  storage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
  host: string;
}

/** A search over conversations; session restricts it to one conversation, of which every place is returned. */
export type SearchQuery = Call<'GET /client/search'>['query'];

const endings: Readonly<Record<ExportFormat, string>> = { md: 'md', json: 'json', recording: 'deskhand.zip' };

interface Sending extends Omit<AnyCall, 'path' | 'query'> {
  method: string;
}

export class Client {
  #fetch: typeof fetch;
  #tab: Tab;
  #surface: string;
  /** Writes that got no answer: the idempotency key of each, and when the call failed. */
  #unanswered = new Map<string, { key: string; since: number }>();
  #questionListeners = new Set<(question: Request) => void>();

  constructor(around: Partial<Surroundings> = {}) {
    this.#fetch = around.fetch ?? globalThis.fetch.bind(globalThis);
    const storage = around.storage ?? sessionStorage;
    this.#tab = new Tab({ fetch: this.#fetch, storage, host: around.host ?? location.host });
    this.#surface = around.surface ?? surface();
  }

  /**
   * Makes a call. Without a signal the call has a time limit; a caller whose call may take longer gives a signal of its own.
   */
  call<R extends Route>(
    route: R,
    ...[call]: Record<never, never> extends Call<R> ? [call?: Call<R>] : [call: Call<R>]
  ): Promise<AnswerOf<R>> {
    const { path, query, ...rest } = (call ?? {}) as AnyCall;
    const address = addressOf(route, { ...when({ path, query }) });
    const method = route.slice(0, route.indexOf(' '));
    return this.#send(address, { ...rest, method }, async (answer) => {
      const text = await answer.text();
      if (text === '' && (answer.status === 202 || answer.status === 204)) return undefined as AnswerOf<R>;
      try {
        return filled(JSON.parse(text)) as AnswerOf<R>;
      } catch (thrown) {
        throw new ApiError('protocol', {}, answer.status, (thrown as SyntaxError).message);
      }
    });
  }

  /** Reads the bytes at an address of the API. */
  blob = (address: string, signal?: AbortSignal) =>
    this.#send(address, { method: 'GET', signal }, (answer) => answer.blob());

  /** Exchanges the code of a link for a token. It returns false when the fragment has no code. */
  async login(fragment: string): Promise<boolean> {
    const code = new URLSearchParams(fragment.replace(/^#/, '')).get('code');
    if (!code) return false;
    // The server would refuse the token of an earlier start before it reads the code.
    this.#tab.forget();
    await this.#tab.take(await this.call('POST /client/login', { body: { code } }));
    return true;
  }

  hello = (signal?: AbortSignal) => this.call('GET /client/hello', { signal });
  /** Lists the agents. With fresh the server reads the login shell again, which takes seconds. */
  agents = (signal?: AbortSignal, all?: boolean, fresh?: boolean) =>
    this.call('GET /client/agents', { query: { all, fresh }, signal });
  inbox = (signal?: AbortSignal) => this.call('GET /client/inbox', { signal }).then(items);

  events(after: { gen: string; seq: number } | undefined, wait: number, signal: AbortSignal) {
    const headers = after ? { 'Deskhand-Gen': after.gen, 'Deskhand-After': `${after.seq}` } : {};
    return this.call('GET /client/events', { ...(after ? { query: { wait } } : {}), signal, headers });
  }

  sessions = (page: Call<'GET /client/sessions'>['query'] = {}, signal?: AbortSignal) =>
    this.call('GET /client/sessions', { query: page, signal });
  session = (id: string) => this.call('GET /client/sessions/{id}', { path: { id } });
  /** Begins a session. With a worktree the call lasts until git has made the worktree. */
  createSession = (body: NewSession) =>
    this.call('POST /client/sessions', {
      body,
      once: true,
      ...(body.worktree ? { signal: unlimited() } : {}),
    });
  patchSession = (id: string, body: SessionPatch, keepalive = false) =>
    this.call('PATCH /client/sessions/{id}', { path: { id }, body, keepalive });

  // The life of a session. Calls that start an agent last until the agent has started.

  deleteSession = (id: string) => this.call('DELETE /client/sessions/{id}', { path: { id } });
  /** Undoes a deletion. The server allows that for a short time after the deletion. */
  restoreSession = (id: string) => this.call('POST /client/sessions/{id}/restore', { path: { id } });
  forkSession = (id: string) =>
    this.call('POST /client/sessions/{id}/fork', { path: { id }, once: true, signal: unlimited() });
  /** Begins a session with another agent; the server puts the transcript so far into the new session's draft. */
  continueSession = (id: string, agent: string) =>
    this.call('POST /client/sessions/{id}/continue', {
      path: { id },
      body: { agent },
      once: true,
      signal: unlimited(),
    });
  /** Lists the sessions that an agent itself has stored. */
  agentSessions = (id: string, query: { directory?: string; before?: string }, signal: AbortSignal) =>
    this.call('GET /client/agents/{id}/sessions', { path: { id }, query, signal });
  importSession = (body: Call<'POST /client/sessions/import'>['body']) =>
    this.call('POST /client/sessions/import', { body, once: true, signal: unlimited() });

  workspaces = (signal?: AbortSignal) => this.call('GET /client/workspaces', { signal }).then(items);
  storage = (signal?: AbortSignal) => this.call('GET /client/storage', { signal });
  verification = (signal?: AbortSignal) => this.call('GET /client/verify', { signal });

  entries = (id: string, before?: number, limit = 200, signal?: AbortSignal) =>
    this.#entries(id, { before, limit }, signal);
  /** Returns the entries before and after a position. */
  entriesAround = (id: string, around: number, limit = 200, signal?: AbortSignal) =>
    this.#entries(id, { around, limit }, signal);
  entriesAfter = (id: string, after: number, limit = 200, signal?: AbortSignal) =>
    this.#entries(id, { after, limit }, signal);
  #entries = (
    id: string,
    query: { before?: number | undefined; after?: number; around?: number; limit: number },
    signal?: AbortSignal,
  ) => this.call('GET /client/sessions/{id}/entries', { path: { id }, query, signal });

  /** Searches every session, the newest first. */
  find = (query: SearchQuery, signal: AbortSignal) => this.call('GET /client/search', { query, signal });

  /** Downloads a whole session as a file. Long sessions take long, so the call has no time limit but the caller's signal. */
  exportSession = (id: string, format: ExportFormat, signal: AbortSignal) =>
    this.#send(
      addressOf('GET /client/sessions/{id}/export', { path: { id }, query: { format } }),
      { method: 'GET', signal },
      async (answer) => ({
        name: fileNameOf(answer.headers.get('Content-Disposition')) ?? `conversation.${endings[format]}`,
        content: await answer.blob(),
      }),
    );

  entryText = async (id: string, entry: string, signal?: AbortSignal) =>
    (
      await this.blob(
        addressOf('GET /client/sessions/{id}/entries/{entry}/text', { path: { id, entry } }),
        signal,
      )
    ).text();

  /**
   * Sends a message with the attachments of the given ids. While a turn runs, the message waits in the queue, replaces the turn, or reaches
   * the agent within the turn. The server copies the attached files before the answer, so the call may take longer than others.
   */
  prompt = (
    id: string,
    message: string,
    when: 'queue' | 'interrupt' | 'steer',
    attachments: readonly string[] = [],
  ) =>
    this.call('POST /client/sessions/{id}/prompt', {
      path: { id },
      body: {
        message,
        when,
        ...(attachments.length > 0 ? { attachments: attachments.map((one) => ({ id: one })) } : {}),
      },
      once: true,
      ...(attachments.length > 0 ? { signal: unlimited() } : {}),
    });
  queue = (id: string, signal?: AbortSignal) =>
    this.call('GET /client/sessions/{id}/queue', { path: { id }, signal }).then(items);
  changeQueued = (id: string, item: string, body: QueuePatch) =>
    this.call('PATCH /client/sessions/{id}/queue/{item}', { path: { id, item }, body });
  removeQueued = (id: string, item: string) =>
    this.call('DELETE /client/sessions/{id}/queue/{item}', { path: { id, item } });
  cancel = (id: string) => this.call('POST /client/sessions/{id}/cancel', { path: { id } });
  setConfig = (id: string, option: string, value: string | boolean) =>
    this.call('POST /client/sessions/{id}/config', { path: { id }, body: { id: option, value } });

  // Returns the mode and model in which new sessions begin in the directory cwd; an empty cwd stands for all directories.

  startMode = (id: string, cwd: string, signal?: AbortSignal) =>
    this.call('GET /client/agents/{id}/start', { path: { id }, query: { cwd }, signal });
  chooseStart = (id: string, cwd: string, body: StartChoice) =>
    this.call('PUT /client/agents/{id}/start', { path: { id }, query: { cwd }, body });

  // Installation of agents. These calls return when an installation has begun or ended; events report the progress.

  install = (id: string, version?: string) =>
    this.call('POST /client/agents/{id}/install', { path: { id }, body: { version } });
  cancelInstall = (id: string) => this.call('DELETE /client/agents/{id}/install', { path: { id } });
  rollback = (id: string) => this.call('POST /client/agents/{id}/rollback', { path: { id } });
  removeAgent = (id: string) => this.call('DELETE /client/agents/{id}', { path: { id } });
  /** Starts the agent for a test. The call lasts as long as the agent takes; the caller ends the test by the signal. */
  testAgent = (id: string, signal: AbortSignal) =>
    this.call('POST /client/agents/{id}/test', { path: { id }, signal });
  /** Returns the size of an installation and whether the disk has room for it. The call may take seconds. */
  installPlan = (id: string, version: string | undefined, signal: AbortSignal) =>
    this.call('POST /client/agents/{id}/plan', { path: { id }, body: { version }, signal });

  // The agents of agents.json.

  agentDefinition = (id: string, signal?: AbortSignal) =>
    this.call('GET /client/agents/{id}/definition', { path: { id }, signal });
  saveAgent = (body: AgentDefinition & { id: string }) =>
    this.call('PUT /client/agents/{id}/definition', { path: { id: body.id }, body });
  forgetAgent = (id: string) => this.call('DELETE /client/agents/{id}/definition', { path: { id } });
  /** Tests an agent that is not saved yet. */
  testDefinition = (definition: AgentDefinition, signal: AbortSignal) =>
    this.call('POST /client/agents/test', { body: { definition }, signal });

  // Login. Events report how a login goes on.

  /** Lists the ways to log in. The server starts an agent that has not been asked yet, and answers when the agent has answered. */
  loginMethods = (id: string, signal: AbortSignal) =>
    this.call('GET /client/agents/{id}/login', { path: { id }, signal });
  startLogin = (id: string, method: string, values?: Record<string, string>) =>
    this.call('POST /client/agents/{id}/login', { path: { id }, body: { method, values } });
  loginState = (id: string) => this.call('GET /client/logins/{id}', { path: { id } });
  cancelLogin = (id: string) => this.call('DELETE /client/logins/{id}', { path: { id } });
  logout = (id: string, signal: AbortSignal) =>
    this.call('POST /client/agents/{id}/logout', { path: { id }, signal });

  terminal = (id: string, after: number, wait: number, signal: AbortSignal) =>
    this.call('GET /client/terminals/{id}', {
      path: { id },
      query: { wait },
      signal,
      headers: { 'Deskhand-After': `${after}` },
    });
  terminalInput = (id: string, bytes: Uint8Array<ArrayBuffer>) =>
    this.call('POST /client/terminals/{id}/input', { path: { id }, bytes });
  terminalSize = (id: string, cols: number, rows: number) =>
    this.call('POST /client/terminals/{id}/size', { path: { id }, body: { cols, rows } });

  processes = (signal?: AbortSignal, pss?: true) =>
    this.call('GET /client/processes', { query: { pss }, signal });
  settings = (signal?: AbortSignal) => this.call('GET /client/settings', { signal });
  patchSettings = (body: SettingsPatch) => this.call('PATCH /client/settings', { body });

  // The MCP servers and skills of a directory. Storing an entry approves the entry. To approve a stored MCP server, a caller sends the hash
  // that the person has seen in the list; a new server has no hash. The server passes entries on without checking them: they are objects.

  mcpServers = (directory: string, signal?: AbortSignal) =>
    this.call('GET /client/config/mcp', { query: scopeOf(directory), signal }) as Promise<
      Equipment<McpServer>
    >;
  saveMcp = (directory: string, name: string, body: unknown, seen: string | undefined) =>
    this.call('PUT /client/config/mcp', {
      query: { ...scopeOf(directory), name, seen },
      body,
    }) as Promise<McpServer>;
  removeMcp = (directory: string, name: string, keepalive = false) =>
    this.call('DELETE /client/config/mcp', { query: { ...scopeOf(directory), name }, keepalive });
  /** Tests an MCP server, either the stored entry or an unsaved change. The caller ends the test by the signal. */
  testMcp = (
    directory: string,
    name: string,
    entry: unknown,
    seen: string | undefined,
    signal: AbortSignal,
  ) =>
    this.call('POST /client/config/mcp/test', {
      query: { ...scopeOf(directory), name, seen },
      body: { entry },
      signal,
    });

  skillEntries = (directory: string, signal?: AbortSignal) =>
    this.call('GET /client/config/skills', { query: scopeOf(directory), signal }) as Promise<
      Equipment<SkillEntry>
    >;
  saveSkills = (directory: string, name: string, body: unknown) =>
    this.call('PUT /client/config/skills', {
      query: { ...scopeOf(directory), name },
      body,
    }) as Promise<SkillEntry>;
  removeSkills = (directory: string, name: string, keepalive = false) =>
    this.call('DELETE /client/config/skills', { query: { ...scopeOf(directory), name }, keepalive });
  /** Fetches a skill source again. The call lasts until git has finished; the caller ends it by the signal. */
  fetchSkills = (directory: string, name: string, signal: AbortSignal) =>
    this.call('POST /client/config/skills/fetch', {
      query: { ...scopeOf(directory), name },
      signal,
    }) as Promise<SkillEntry>;
  skillText = (directory: string, name: string, skill: string, path: string, signal?: AbortSignal) =>
    this.call('GET /client/config/skills/file', {
      query: { ...scopeOf(directory), name, skill, path },
      signal,
    }).then(({ text }) => text);

  approve = (directory: string, hashes: readonly string[]) =>
    this.call('POST /client/trust', { body: { ...scopeOf(directory), hashes } });
  /** Lists everything in a directory that starts programs. */
  trusted = (directory: string, signal?: AbortSignal) =>
    this.call('GET /client/trust', { query: scopeOf(directory), signal }).then(items);
  /** Lists the approvals of all directories, and those of all projects under the name allProjects. */
  approvals = (signal?: AbortSignal) =>
    this.call('GET /client/trust/approvals', { signal })
      .then(items)
      .then((list) => list.map((one) => ({ ...one, directory: one.directory || allProjects })));
  revoke = (directory: string, hash: string) =>
    this.call('DELETE /client/trust', { query: { ...scopeOf(directory), hash } });
  revokeAll = (directory: string) =>
    this.call('DELETE /client/trust/approvals', { query: scopeOf(directory) });

  directories = (path?: string, signal?: AbortSignal) =>
    this.call('GET /client/directories', { query: { path }, signal });

  // Remote runtimes. Calls that ask a runtime last as long as the network takes.

  places = (signal?: AbortSignal) => this.call('GET /client/places', { signal }).then(items);
  addPlace = (body: NewSite) => this.call('POST /client/places', { body, once: true, signal: unlimited() });
  patchPlace = (id: string, body: SitePatch) =>
    this.call('PATCH /client/places/{id}', { path: { id }, body, signal: unlimited() });
  removePlace = (id: string) =>
    this.call('DELETE /client/places/{id}', { path: { id }, signal: unlimited() });
  checkPlace = (id: string) =>
    this.call('POST /client/places/{id}/check', { path: { id }, signal: unlimited() });
  placeAgents = (id: string, signal?: AbortSignal) =>
    this.call('GET /client/places/{id}/agents', { path: { id }, signal }).then(items);
  placeDirectories = (id: string, path?: string) =>
    this.call('GET /client/places/{id}/directories', { path: { id }, query: { path } });

  answer = (id: string, body: Answer) =>
    this.call('POST /client/requests/{id}/answer', { path: { id }, body });

  // The rulebook.

  rules = (signal?: AbortSignal) => this.call('GET /client/rules', { signal }).then(items);
  addRule = (body: NewRule) => this.call('POST /client/rules', { body, once: true });
  changeRule = (id: string, body: RulePatch) => this.call('PATCH /client/rules/{id}', { path: { id }, body });
  removeRule = (id: string) => this.call('DELETE /client/rules/{id}', { path: { id } });
  /** Returns how a rule would have answered earlier requests. replaces is the id of the rule that the given rule changes. */
  simulateRule = (rule: NewRule, replaces: string | undefined, signal: AbortSignal) =>
    this.call('POST /client/rules/simulate', { body: { rule, replaces, limit: 200 }, signal });
  suggestRules = (id: string, signal: AbortSignal) =>
    this.call('GET /client/requests/{id}/rules', { path: { id }, signal });

  // The names and routes of questions are older than this client, and other programs use them: they stay.

  /** Calls the listener for every question, form or URL request that arrives. The returned function removes the listener. */
  onQuestion(listener: (question: Request) => void): () => void {
    this.#questionListeners.add(listener);
    return () => this.#questionListeners.delete(listener);
  }

  /** Answers all questions of a request: for each question a list of chosen ids, or free text. */
  replyQuestion = ({ id, session }: Pick<Request, 'id' | 'session'>, answers: string[][]) =>
    this.call('POST /client/sessions/{session}/questions/{question}/reply', {
      path: { session, question: id },
      body: { answers },
    });
  rejectQuestion = ({ id, session }: Pick<Request, 'id' | 'session'>) =>
    this.call('POST /client/sessions/{session}/questions/{question}/reject', {
      path: { session, question: id },
    });

  /** Returns the headers for a request that the caller makes itself. The caller calls doubt when nobody has answered. */
  async headers(): Promise<Headers> {
    await this.#tab.ready();
    return this.#headers();
  }

  doubt(): void {
    this.#tab.doubt();
  }

  #headers(): Headers {
    // The surface lets other surfaces show where an answer was given. It grants no rights.
    const headers = new Headers({ Accept: 'application/json', 'Deskhand-Surface': this.#surface });
    const { token } = this.#tab;
    if (token) headers.set('Authorization', `Bearer ${token}`);
    return headers;
  }

  /** Passes requests of the feed to the listeners of onQuestion. */
  deliver(events: readonly Event[]): void {
    for (const event of events) {
      if (event.type === 'entry.upsert' || event.type === 'queue.upsert') this.#heard(event);
      if (event.type !== 'request.upsert') continue;
      const request = event.data as Request;
      if (request.status !== 'requested' || !['question', 'form', 'url'].includes(request.kind)) continue;
      for (const listener of this.#questionListeners) listener(request);
    }
  }

  /**
   * Returns the idempotency key of a call. A call that failed less than a minute ago and is made again has the same key, so that a person
   * who presses the button twice does not send the message twice.
   */
  #keyOf(what: string): string {
    const lost = this.#unanswered.get(what);
    this.#unanswered.delete(what);
    return lost && Date.now() - lost.since < 60_000 ? lost.key : crypto.randomUUID();
  }

  #lost(what: string, key: string) {
    this.#unanswered.set(what, { key, since: Date.now() });
    for (const oldest of this.#unanswered.keys()) {
      if (this.#unanswered.size <= 20) break;
      this.#unanswered.delete(oldest);
    }
  }

  /** Forgets the key of a prompt that has arrived after all: the next prompt with the same text is a new message. */
  #heard({ session, data }: Event) {
    const { kind, text, message = kind === 'user' ? text : undefined } = data as Partial<Entry & QueueItem>;
    if (session === undefined || message === undefined) return;
    for (const what of this.#unanswered.keys())
      if (
        what.startsWith(
          `/client/sessions/${encodeURIComponent(session)}/prompt {"message":${JSON.stringify(message)},`,
        )
      )
        this.#unanswered.delete(what);
  }

  /** Makes a call and reads the answer. The caller's signal limits the time; without a signal the default limit holds. */
  #send<T>(path: string, call: Sending, read: (answer: Response) => Promise<T>): Promise<T> {
    const what = `${path} ${JSON.stringify(call.body)}`;
    const key = call.once ? this.#keyOf(what) : '';
    const run = async (signal: AbortSignal) => {
      try {
        const answer = await this.#ask(path, call, key, signal);
        if (!answer.ok) throw problem(answer.status, await answer.json().catch(() => undefined));
        return await read(answer);
      } catch (thrown) {
        const answered = thrown instanceof ApiError;
        if (key && (!answered || thrown.code === 'protocol')) this.#lost(what, key);
        if (answered) throw thrown;
        const given = call.signal ?? call.end;
        if (given?.aborted) throw given.reason;
        this.#tab.doubt();
        if (signal.aborted) throw new ApiError('timeout');
        throw new ApiError('network', {}, 0, thrown instanceof Error ? thrown.message : '');
      }
    };
    return call.signal ? run(call.signal) : limited(run, call.end);
  }

  /** Sends a call to the server once the server has proved its identity, and once more after a restart of the server. */
  async #ask(path: string, call: Sending, key: string, signal: AbortSignal): Promise<Response> {
    const wait = this.#tab.ready();
    if (wait) await wait;
    const { token } = this.#tab;
    const answer = await this.#fetch(path, this.#request(call, key, signal));
    if (answer.status !== 401 || !(await this.#tab.renewed(token))) return answer;
    return this.#fetch(path, this.#request(call, key, signal));
  }

  #request(call: Sending, key: string, signal: AbortSignal): RequestInit {
    const headers = this.#headers();
    for (const [name, value] of Object.entries(call.headers ?? {})) headers.set(name, value);
    if (key) headers.set('Idempotency-Key', `"${key}"`);
    if (call.body !== undefined) headers.set('Content-Type', 'application/json');
    if (call.bytes) headers.set('Content-Type', 'application/octet-stream');
    return {
      method: call.method,
      headers,
      cache: 'no-store',
      signal,
      ...when({
        body: call.bytes ?? (call.body === undefined ? undefined : JSON.stringify(call.body)),
        keepalive: call.keepalive || undefined,
      }),
    };
  }
}

/** The server writes an empty list as null. Nothing else at the top of an answer is null. */
function filled(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return answer;
  return Object.fromEntries(Object.entries(answer).map(([key, value]) => [key, value ?? []]));
}

function items<T>(page: { items: T[] }): T[] {
  return page.items;
}

/** Leaves out undefined members: exactOptionalPropertyTypes does not accept undefined for an optional member. */
function when<T extends Record<string, unknown>>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
