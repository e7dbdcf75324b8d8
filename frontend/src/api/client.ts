import { surface } from '../shell/wails';
import { ApiError, problem } from './errors';
import { fileNameOf } from './filename';
import { limited, unlimited } from './limit';
import { Tab, type Granted } from './tab';
import type { NewSite, Site, SiteAgent, SiteDirectory, SitePatch, SiteRemoved } from './places';
import type {
  Agent,
  AgentDefinition,
  AgentList,
  AgentSessionPage,
  Answer,
  Approval,
  Directory,
  Entry,
  EntryPage,
  Equipment,
  Event,
  EventBatch,
  Executable,
  ExportFormat,
  Found,
  Hello,
  InstallPlan,
  KnownWorkspace,
  Login,
  LoginMethods,
  McpServer,
  McpTest,
  NewRule,
  NewSession,
  Page,
  ProcessList,
  QueueItem,
  QueuePatch,
  Request,
  Rule,
  RulePatch,
  PartPage,
  RequestPart,
  RuleSuggestions,
  Sent,
  Session,
  SessionPatch,
  Settings,
  SettingsPatch,
  Simulated,
  SkillEntry,
  StorageState,
  TerminalOutput,
  TestReport,
  Verification,
  StartChoice,
  StartMode,
} from './records';

// All calls of the client API. URLs are relative, because the same code runs in the window and in a browser on loopback. In the window the
// routes are mounted beside the assets and need no token; in a browser the client exchanges the link's code for a token (see tab.ts).

/** The parts of the page that the client uses. Tests give parts of their own. */
export interface Surroundings {
  fetch: typeof fetch;
  surface: string;
  storage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
  host: string;
}

/** A search over conversations. */
export interface SearchQuery {
  q: string;
  agent?: string;
  /** A workspace's id. */
  workspace?: string;
  /** A session's id. A search in one session returns every place that matches. */
  session?: string;
  /** The period of the entries: from is inclusive, to is exclusive. */
  from?: string;
  to?: string;
  before?: string;
  limit?: number;
}

const endings: Readonly<Record<ExportFormat, string>> = { md: 'md', json: 'json', recording: 'deskhand.zip' };

interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  body?: unknown;
  /** The body, where the body is not JSON. */
  bytes?: Uint8Array<ArrayBuffer>;
  signal?: AbortSignal;
  /**
   * Values that would otherwise be in the query. Engines keep every address that a page has requested for the life of the page: with a new
   * address in each of sixty calls a second, a page grew by 30 MiB an hour.
   */
  headers?: Record<string, string>;
  /**
   * Sends an idempotency key. Calls that create something set once, because a repeated call would create a second record. Calls that set a
   * value do not: the same value may be set again later, and must then take effect.
   */
  once?: boolean;
  /** Lets the request outlive the page, for a draft that is saved while the page closes. */
  keepalive?: boolean;
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

  /** Exchanges the code of a link for a token. It returns false when the fragment has no code. */
  async login(fragment: string): Promise<boolean> {
    const code = new URLSearchParams(fragment.replace(/^#/, '')).get('code');
    if (!code) return false;
    // The server would refuse the token of an earlier start before it reads the code.
    this.#tab.forget();
    await this.#tab.take(await this.#json<Granted>('/client/login', { method: 'POST', body: { code } }));
    return true;
  }

  hello = (signal?: AbortSignal) => this.#json<Hello>('/client/hello', { ...when({ signal }) });
  /** Lists the agents. With fresh the server reads the login shell again, which takes seconds. */
  agents = (signal?: AbortSignal, all?: boolean, fresh?: boolean) =>
    this.#json<AgentList>(`/client/agents${search({ all, fresh })}`, { ...when({ signal }) });
  /** Returns the suggestions for a first message: whether the directory has files, a repository, tests. */
  starters = (session: string) =>
    this.#json<{ files: boolean; repository: boolean; tests?: string }>(
      `/client/sessions/${part(session)}/starters`,
    );
  /** Returns the branch or commit that is checked out in the session's directory. */
  branch = (session: string) =>
    this.#json<{ name?: string; commit?: string }>(`/client/sessions/${part(session)}/branch`);
  inbox = (signal?: AbortSignal) => this.#list<Request>('/client/inbox', signal);

  events(after: { gen: string; seq: number } | undefined, wait: number, signal: AbortSignal) {
    const headers = after ? { 'Deskhand-Gen': after.gen, 'Deskhand-After': `${after.seq}` } : {};
    return this.#json<EventBatch>(`/client/events${after ? search({ wait }) : ''}`, { signal, headers });
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
  /** Begins a session. With a worktree the call lasts until git has made the worktree. */
  createSession = (body: NewSession) =>
    this.#json<Session>('/client/sessions', {
      method: 'POST',
      body,
      once: true,
      ...(body.worktree ? { signal: unlimited() } : {}),
    });
  patchSession = (id: string, body: SessionPatch, keepalive = false) =>
    this.#json<Session>(`/client/sessions/${part(id)}`, { method: 'PATCH', body, keepalive });

  // The life of a session. Calls that start an agent last until the agent has started.

  deleteSession = (id: string) => this.#done(`/client/sessions/${part(id)}`, undefined, 'DELETE');
  /** Undoes a deletion. The server allows that for a short time after the deletion. */
  restoreSession = (id: string) =>
    this.#json<Session>(`/client/sessions/${part(id)}/restore`, { method: 'POST' });
  forkSession = (id: string) =>
    this.#json<Session>(`/client/sessions/${part(id)}/fork`, {
      method: 'POST',
      once: true,
      signal: unlimited(),
    });
  /** Begins a session with another agent; the server puts the transcript so far into the new session's draft. */
  continueSession = (id: string, agent: string) =>
    this.#json<Session>(`/client/sessions/${part(id)}/continue`, {
      method: 'POST',
      body: { agent },
      once: true,
      signal: unlimited(),
    });
  /** Lists the sessions that an agent itself has stored. */
  async agentSessions(
    agent: string,
    wanted: { directory?: string; before?: string },
    signal: AbortSignal,
  ): Promise<AgentSessionPage> {
    const path = `/client/agents/${part(agent)}/sessions${search(wanted)}`;
    const page = await this.#json<AgentSessionPage & { items: AgentSessionPage['items'] | null }>(path, {
      signal,
    });
    return { ...page, items: page.items ?? [] };
  }
  importSession = (body: {
    agent: string;
    acpSessionId: string;
    cwd: string;
    title?: string;
    directories?: readonly string[];
  }) =>
    this.#json<Session>('/client/sessions/import', {
      method: 'POST',
      body,
      once: true,
      signal: unlimited(),
    });

  workspaces = (signal?: AbortSignal) => this.#list<KnownWorkspace>('/client/workspaces', signal);
  /** Stores the new path of a directory that was moved. */
  relink = (id: string, path: string) =>
    this.#json<KnownWorkspace>(`/client/workspaces/${part(id)}/relink`, { method: 'POST', body: { path } });

  storage = (signal?: AbortSignal) => this.#json<StorageState>('/client/storage', { ...when({ signal }) });
  verification = (signal?: AbortSignal) =>
    this.#json<Verification>('/client/verify', { ...when({ signal }) });
  verify = (body: {
    agents?: boolean;
    repair?: boolean;
    takeJournal?: string[];
    keepTranscript?: string[];
  }) => this.#json<Verification>('/client/verify', { method: 'POST', body });
  cancelVerify = () => this.#done('/client/verify', undefined, 'DELETE');

  entries = (id: string, before?: number, limit = 200, signal?: AbortSignal) =>
    this.#entries(id, { before, limit }, signal);
  /** Returns the entries before and after a position. */
  entriesAround = (id: string, around: number, limit = 200, signal?: AbortSignal) =>
    this.#entries(id, { around, limit }, signal);
  entriesAfter = (id: string, after: number, limit = 200, signal?: AbortSignal) =>
    this.#entries(id, { after, limit }, signal);

  async #entries(
    id: string,
    wanted: { before?: number | undefined; around?: number; after?: number; limit: number },
    signal?: AbortSignal,
  ): Promise<EntryPage> {
    const path = `/client/sessions/${part(id)}/entries${search(wanted)}`;
    const page = await this.#json<{ [K in keyof EntryPage]: EntryPage[K] | null }>(path, {
      ...when({ signal }),
    });
    return {
      items: page.items ?? [],
      turns: page.turns ?? [],
      requests: page.requests ?? [],
      ...when({ next: page.next ?? undefined, newer: page.newer ?? undefined }),
    };
  }

  /** Searches every session, the newest first. */
  async find(wanted: SearchQuery, signal: AbortSignal): Promise<Found> {
    const found = await this.#json<Found & { items: Found['items'] | null }>(
      `/client/search${search({ ...wanted })}`,
      { signal },
    );
    return { ...found, items: found.items ?? [] };
  }

  /** Downloads a whole session as a file. Long sessions take long, so the call has no time limit but the caller's signal. */
  exportSession = (id: string, format: ExportFormat, signal: AbortSignal) =>
    this.#send(`/client/sessions/${part(id)}/export${search({ format })}`, { signal }, async (answer) => ({
      name: fileNameOf(answer.headers.get('Content-Disposition')) ?? `conversation.${endings[format]}`,
      content: await answer.blob(),
    }));

  entryText(id: string, entry: string, signal?: AbortSignal): Promise<string> {
    const path = `/client/sessions/${part(id)}/entries/${part(entry)}/text`;
    return this.#send(path, { ...when({ signal }) }, (answer) => answer.text());
  }

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
    this.#json<Sent>(`/client/sessions/${part(id)}/prompt`, {
      method: 'POST',
      body: {
        message,
        when,
        ...(attachments.length > 0 ? { attachments: attachments.map((one) => ({ id: one })) } : {}),
      },
      once: true,
      ...(attachments.length > 0 ? { signal: unlimited() } : {}),
    });
  queue = (id: string, signal?: AbortSignal) =>
    this.#list<QueueItem>(`/client/sessions/${part(id)}/queue`, signal);
  changeQueued = (id: string, item: string, body: QueuePatch) =>
    this.#json<Sent>(`/client/sessions/${part(id)}/queue/${part(item)}`, { method: 'PATCH', body });
  removeQueued = (id: string, item: string) =>
    this.#done(`/client/sessions/${part(id)}/queue/${part(item)}`, undefined, 'DELETE');
  restoreQueued = (id: string, item: string) =>
    this.#json<QueueItem>(`/client/sessions/${part(id)}/queue/${part(item)}/restore`, { method: 'POST' });
  /** Ends a straggler, which the transcript shows as the given entry. */
  endStraggler = (id: string, entry: string) =>
    this.#done(`/client/sessions/${part(id)}/stragglers/${part(entry)}/end`);
  cancel = (id: string) => this.#done(`/client/sessions/${part(id)}/cancel`);
  restart = (id: string) => this.#done(`/client/sessions/${part(id)}/restart`);
  setConfig = (id: string, option: string, value: string | boolean) =>
    this.#json<Session>(`/client/sessions/${part(id)}/config`, {
      method: 'POST',
      body: { id: option, value },
    });

  // Returns the mode and model in which new sessions begin in the directory cwd; an empty cwd stands for all directories.

  startMode = (id: string, cwd: string, signal?: AbortSignal) =>
    this.#json<StartMode>(`/client/agents/${part(id)}/start${search({ cwd })}`, { ...when({ signal }) });
  chooseStart = (id: string, cwd: string, body: StartChoice) =>
    this.#json<StartMode>(`/client/agents/${part(id)}/start${search({ cwd })}`, { method: 'PUT', body });

  // Installation of agents. These calls return when an installation has begun or ended; events report the progress.

  install = (id: string, version?: string) =>
    this.#json<Agent>(`/client/agents/${part(id)}/install`, { method: 'POST', body: when({ version }) });
  cancelInstall = (id: string) => this.#done(`/client/agents/${part(id)}/install`, undefined, 'DELETE');
  rollback = (id: string) => this.#json<Agent>(`/client/agents/${part(id)}/rollback`, { method: 'POST' });
  removeAgent = (id: string) => this.#done(`/client/agents/${part(id)}`, undefined, 'DELETE');
  /** Starts the agent for a test. The call lasts as long as the agent takes; the caller ends the test by the signal. */
  testAgent = (id: string, signal: AbortSignal) =>
    this.#json<TestReport>(`/client/agents/${part(id)}/test`, { method: 'POST', signal });
  /** Returns the size of an installation and whether the disk has room for it. The call may take seconds. */
  installPlan = (id: string, version: string | undefined, signal: AbortSignal) =>
    this.#json<InstallPlan>(`/client/agents/${part(id)}/plan`, {
      method: 'POST',
      body: when({ version }),
      signal,
    });

  // The agents of agents.json.

  agentDefinition = (id: string, signal?: AbortSignal) =>
    this.#json<AgentDefinition>(`/client/agents/${part(id)}/definition`, { ...when({ signal }) });
  saveAgent = (definition: AgentDefinition & { id: string }) =>
    this.#json<Agent>(`/client/agents/${part(definition.id)}/definition`, {
      method: 'PUT',
      body: definition,
    });
  forgetAgent = (id: string) => this.#done(`/client/agents/${part(id)}/definition`, undefined, 'DELETE');
  /** Tests an agent that is not saved yet. */
  testDefinition = (definition: AgentDefinition, signal: AbortSignal) =>
    this.#json<TestReport>('/client/agents/test', { method: 'POST', body: { definition }, signal });

  // Login. Events report how a login goes on.

  /** Lists the ways to log in. The server starts an agent that has not been asked yet, and answers when the agent has answered. */
  loginMethods = (id: string, signal: AbortSignal) =>
    this.#json<LoginMethods>(`/client/agents/${part(id)}/login`, { signal });
  startLogin = (id: string, method: string, values?: Record<string, string>) =>
    this.#json<Login>(`/client/agents/${part(id)}/login`, {
      method: 'POST',
      body: { method, ...when({ values }) },
    });
  loginState = (id: string) => this.#json<Login>(`/client/logins/${part(id)}`);
  cancelLogin = (id: string) => this.#done(`/client/logins/${part(id)}`, undefined, 'DELETE');
  logout = (id: string, signal: AbortSignal) =>
    this.#empty(`/client/agents/${part(id)}/logout`, { method: 'POST', signal });

  // Reads the terminal of a login.

  terminal = (id: string, after: number, wait: number, signal: AbortSignal) =>
    this.#json<TerminalOutput>(`/client/terminals/${part(id)}${search({ wait })}`, {
      signal,
      headers: { 'Deskhand-After': `${after}` },
    });
  terminalInput = (id: string, bytes: Uint8Array<ArrayBuffer>) =>
    this.#empty(`/client/terminals/${part(id)}/input`, { method: 'POST', bytes });
  terminalSize = (id: string, cols: number, rows: number) =>
    this.#done(`/client/terminals/${part(id)}/size`, { cols, rows });

  processes = (signal?: AbortSignal, pss?: true) =>
    this.#json<ProcessList>(`/client/processes${search({ pss })}`, { ...when({ signal }) });
  settings = (signal?: AbortSignal) => this.#json<Settings>('/client/settings', { ...when({ signal }) });
  patchSettings = (body: SettingsPatch) =>
    this.#json<Settings>('/client/settings', { method: 'PATCH', body });

  // The MCP servers and skills of a directory. Storing an entry approves the entry. To approve a stored MCP server, a caller sends the hash
  // that the person has seen in the list; a new server has no hash.

  mcpServers = (directory: string, signal?: AbortSignal) =>
    this.#equipment<McpServer>(`/client/config/mcp${search({ directory })}`, signal);
  saveMcp = (directory: string, name: string, entry: unknown, seen: string | undefined) =>
    this.#json<McpServer>(`/client/config/mcp${search({ directory, name, seen })}`, {
      method: 'PUT',
      body: entry,
    });
  removeMcp = (directory: string, name: string, keepalive = false) =>
    this.#empty(`/client/config/mcp${search({ directory, name })}`, { method: 'DELETE', keepalive });
  /** Tests an MCP server, either the stored entry or an unsaved change. The caller ends the test by the signal. */
  testMcp = (
    directory: string,
    name: string,
    entry: unknown,
    seen: string | undefined,
    signal: AbortSignal,
  ) =>
    this.#json<McpTest>(`/client/config/mcp/test${search({ directory, name, seen })}`, {
      method: 'POST',
      body: when({ entry }),
      signal,
    }).then((test) => ({ ...test, tools: (test.tools as McpTest['tools'] | null) ?? [] }));

  skillEntries = (directory: string, signal?: AbortSignal) =>
    this.#equipment<SkillEntry>(`/client/config/skills${search({ directory })}`, signal);
  saveSkills = (directory: string, name: string, entry: unknown) =>
    this.#json<SkillEntry>(`/client/config/skills${search({ directory, name })}`, {
      method: 'PUT',
      body: entry,
    });
  removeSkills = (directory: string, name: string, keepalive = false) =>
    this.#empty(`/client/config/skills${search({ directory, name })}`, { method: 'DELETE', keepalive });
  /** Fetches a skill source again. The call lasts until git has finished; the caller ends it by the signal. */
  fetchSkills = (directory: string, name: string, signal: AbortSignal) =>
    this.#json<SkillEntry>(`/client/config/skills/fetch${search({ directory, name })}`, {
      method: 'POST',
      signal,
    });
  skillText = (directory: string, name: string, skill: string, path: string, signal?: AbortSignal) =>
    this.#json<{ text: string }>(`/client/config/skills/file${search({ directory, name, skill, path })}`, {
      ...when({ signal }),
    }).then(({ text }) => text);

  approve = (directory: string, hashes: readonly string[]) =>
    this.#done('/client/trust', { directory, hashes });
  /** Lists everything in a directory that starts programs. */
  trusted = (directory: string, signal?: AbortSignal) =>
    this.#json<{ items: Executable[] }>(`/client/trust${search({ directory })}`, {
      ...when({ signal }),
    }).then(({ items }) => items);
  /** Lists the approvals of all directories. */
  approvals = (signal?: AbortSignal) =>
    this.#json<{ items: Approval[] }>('/client/trust/approvals', { ...when({ signal }) }).then(
      ({ items }) => items,
    );
  revoke = (directory: string, hash: string) =>
    this.#empty(`/client/trust${search({ directory, hash })}`, { method: 'DELETE' });
  revokeAll = (directory: string) =>
    this.#empty(`/client/trust/approvals${search({ directory })}`, { method: 'DELETE' });

  directories = (path?: string, signal?: AbortSignal) =>
    this.#json<Directory>(`/client/directories${search({ path })}`, { ...when({ signal }) }).then((at) => ({
      ...at,
      items: (at.items as Directory['items'] | null) ?? [],
    }));

  // Remote runtimes. Calls that ask a runtime last as long as the network takes.

  places = (signal?: AbortSignal) => this.#list<Site>('/client/places', signal);
  addPlace = (body: NewSite) =>
    this.#json<Site>('/client/places', { method: 'POST', body, once: true, signal: unlimited() });
  patchPlace = (id: string, body: SitePatch) =>
    this.#json<Site>(`/client/places/${part(id)}`, { method: 'PATCH', body, signal: unlimited() });
  removePlace = (id: string) =>
    this.#json<SiteRemoved>(`/client/places/${part(id)}`, { method: 'DELETE', signal: unlimited() });
  checkPlace = (id: string) =>
    this.#json<Site>(`/client/places/${part(id)}/check`, { method: 'POST', signal: unlimited() });
  placeAgents = (id: string, signal?: AbortSignal) =>
    this.#list<SiteAgent>(`/client/places/${part(id)}/agents`, signal);
  placeDirectories = (id: string, path?: string) =>
    this.#json<SiteDirectory>(`/client/places/${part(id)}/directories${search({ path })}`);

  answer = (request: string, body: Answer) => this.#done(`/client/requests/${part(request)}/answer`, body);

  // The rulebook.

  rules = (signal?: AbortSignal) => this.#list<Rule>('/client/rules', signal);
  addRule = (body: NewRule) => this.#json<Rule>('/client/rules', { method: 'POST', body, once: true });
  changeRule = (id: string, body: RulePatch) =>
    this.#json<Rule>(`/client/rules/${part(id)}`, { method: 'PATCH', body });
  removeRule = (id: string) => this.#done(`/client/rules/${part(id)}`, undefined, 'DELETE');
  /** Returns how a rule would have answered earlier requests. replaces is the id of the rule that the given rule changes. */
  simulateRule = (rule: NewRule, replaces: string | undefined, signal: AbortSignal) =>
    this.#json<Simulated>('/client/rules/simulate', {
      method: 'POST',
      body: { rule, ...when({ replaces }) },
      signal,
    });
  requestParts = (request: string, signal: AbortSignal) =>
    this.#json<{ items: RequestPart[] }>(`/client/requests/${part(request)}/parts`, { signal });
  requestPart = (request: string, index: number, offset: number, signal: AbortSignal) =>
    this.#json<PartPage>(
      `/client/requests/${part(request)}/parts/${String(index)}?offset=${String(offset)}&limit=32768`,
      { signal },
    );
  suggestRules = (request: string, signal: AbortSignal) =>
    this.#json<RuleSuggestions>(`/client/requests/${part(request)}/rules`, { signal });

  // The names and routes of questions are older than this client, and other programs use them: they stay.

  /** Calls the listener for every question, form or URL request that arrives. The returned function removes the listener. */
  onQuestion(listener: (question: Request) => void): () => void {
    this.#questionListeners.add(listener);
    return () => this.#questionListeners.delete(listener);
  }

  /** Answers all questions of a request: for each question a list of chosen ids, or free text. */
  replyQuestion = (of: Pick<Request, 'id' | 'session'>, answers: string[][]) =>
    this.#done(`/client/sessions/${part(of.session)}/questions/${part(of.id)}/reply`, { answers });
  rejectQuestion = (of: Pick<Request, 'id' | 'session'>) =>
    this.#done(`/client/sessions/${part(of.session)}/questions/${part(of.id)}/reject`);

  // attachments/calls.ts and discord.ts use the following methods for their calls. Those files are loaded later, with the components that
  // need them.

  /** Makes a call whose answer is JSON. */
  json = <T>(path: string, signal: AbortSignal, body?: unknown, method: 'POST' | 'PUT' = 'POST') =>
    this.#json<T>(path, { signal, ...(body === undefined ? {} : { method, body }) });
  // The next two make calls without an answer body. A caller gives a signal of its own where a call may take longer than others.
  remove = (path: string, signal?: AbortSignal) =>
    this.#empty(path, { method: 'DELETE', ...when({ signal }) });
  post = (path: string, body?: unknown, signal?: AbortSignal) =>
    this.#empty(path, { method: 'POST', ...when({ body, signal }) });
  put = <T>(path: string, body: unknown) => this.#json<T>(path, { method: 'PUT', body });
  blob = (path: string, signal: AbortSignal) => this.#send(path, { signal }, (answer) => answer.blob());
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

  async #equipment<T>(path: string, signal?: AbortSignal): Promise<Equipment<T>> {
    const found = await this.#json<Equipment<T> & { items: T[] | null }>(path, { ...when({ signal }) });
    return { ...found, items: found.items ?? [] };
  }

  async #list<T>(path: string, signal?: AbortSignal): Promise<T[]> {
    const { items } = await this.#json<{ items: T[] | null }>(path, { ...when({ signal }) });
    return items ?? [];
  }

  #done(path: string, body?: unknown, method: 'POST' | 'DELETE' = 'POST'): Promise<void> {
    return this.#empty(path, { method, ...when({ body }) });
  }

  #empty(path: string, call: Call): Promise<void> {
    return this.#send(path, call, async (answer) => {
      await answer.arrayBuffer(); // the connection stays in use until the empty body has ended
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
      if (what.startsWith(`/client/sessions/${part(session)}/prompt {"message":${JSON.stringify(message)},`))
        this.#unanswered.delete(what);
  }

  /** Makes a call and reads the answer. The caller's signal limits the time; without a signal the default limit holds. */
  #send<T>(path: string, call: Call, read: (answer: Response) => Promise<T>): Promise<T> {
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
        if (call.signal?.aborted) throw call.signal.reason;
        this.#tab.doubt();
        if (signal.aborted) throw new ApiError('timeout');
        throw new ApiError('network', {}, 0, thrown instanceof Error ? thrown.message : '');
      }
    };
    return call.signal ? run(call.signal) : limited(run);
  }

  /** Sends a call to the server once the server has proved its identity, and once more after a restart of the server. */
  async #ask(path: string, call: Call, key: string, signal: AbortSignal): Promise<Response> {
    const wait = this.#tab.ready();
    if (wait) await wait;
    const { token } = this.#tab;
    const answer = await this.#fetch(path, this.#request(call, key, signal));
    if (answer.status !== 401 || !(await this.#tab.renewed(token))) return answer;
    return this.#fetch(path, this.#request(call, key, signal));
  }

  #request(call: Call, key: string, signal: AbortSignal): RequestInit {
    const headers = this.#headers();
    for (const [name, value] of Object.entries(call.headers ?? {})) headers.set(name, value);
    if (key) headers.set('Idempotency-Key', `"${key}"`);
    if (call.body !== undefined) headers.set('Content-Type', 'application/json');
    if (call.bytes) headers.set('Content-Type', 'application/octet-stream');
    return {
      method: call.method ?? 'GET',
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

/** Leaves out undefined members: exactOptionalPropertyTypes does not accept undefined for an optional member. */
function when<T extends Record<string, unknown>>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
