import { flushSync } from 'svelte';
import { afterEach, beforeEach, vi } from 'vitest';
import { Client } from '../api/client';
import { pace } from '../api/events';
import type { Agent, Comparison, EventBatch, Login, QueueItem, Request, Session } from '../api/records';
import { compose } from '../state/state';
import { agent, entry, event, session } from './records';

export const login: Login = {
  id: 'l1',
  agent: 'claude',
  method: 'm',
  type: 'agent',
  state: 'running',
  startedAt: '2026-11-21T14:00:00.000Z',
};

interface Call {
  path: string;
  method: string;
  body: unknown;
}

/** The records that the fake server answers with. */
interface Stored {
  agents: Agent[];
  sessions: Session[];
  comparisons: Comparison[];
  inbox: Request[];
  entries: unknown[];
  requests: Request[];
  queue: QueueItem[];
}

interface FakeServer {
  stored: Stored;
  /** The calls that the page made. */
  calls: Call[];
  /** Returns a problem for the calls that the server refuses. */
  refuse: ((path: string, init: RequestInit | undefined) => unknown) | undefined;
  /** Pages of entries are answered after this. */
  slow: Promise<void> | undefined;
  /** A fork is answered after this. */
  forking: Promise<void> | undefined;
  /** Begins the page anew. */
  begin: () => Promise<void>;
  /** Answers the held request of the feed. */
  feed: (batch: EventBatch) => Promise<void>;
  /** Sends one event. */
  tell: (type: string, data: unknown, seq: number) => Promise<void>;
}

/**
 * The state of a page over a fake server, new for each test of the file that calls fakePage. Timers are fake; the feed's first batch has
 * come when a test begins.
 */
export function fakePage(): ReturnType<typeof compose> & FakeServer {
  let batches: ((batch: EventBatch) => void)[] = [];
  const begin = async () => {
    batches = [];
    Object.assign(page, compose(new Client({ fetch: fetched, surface: 'browser', storage: sessionStorage })));
    void page.connection.start('', () => undefined);
    await feed({ gen: 'g', seq: 1, reset: true, events: [] });
  };
  const feed = async (batch: EventBatch) => {
    await vi.advanceTimersByTimeAsync(0);
    if (batches.length === 0) await vi.advanceTimersByTimeAsync(pace); // the pace between two calls
    batches.shift()?.(batch);
    await vi.advanceTimersByTimeAsync(20);
    flushSync();
  };
  const tell = (type: string, data: unknown, seq: number) =>
    feed({ gen: 'g', seq, events: [{ ...event(type, data), seq }] });

  const fetched = ((path: string, init?: RequestInit) => {
    page.calls.push({
      path,
      method: init?.method ?? 'GET',
      body: init?.body ? JSON.parse(init.body as string) : undefined,
    });
    const refused = page.refuse?.(path, init) as { status?: number } | undefined;
    if (refused)
      return Promise.resolve(new Response(JSON.stringify(refused), { status: refused.status ?? 409 }));
    if (path.startsWith('/client/events')) {
      return new Promise<Response>((done) =>
        batches.push((batch) => done(new Response(JSON.stringify(batch), { status: 200 }))),
      );
    }
    const answered = () => new Response(JSON.stringify(answer(path, page.stored)), { status: 200 });
    if (page.forking && path.endsWith('/fork')) return page.forking.then(answered);
    return page.slow && path.includes('/entries') ? page.slow.then(answered) : Promise.resolve(answered());
  }) as typeof fetch;

  const untouched = (): Omit<FakeServer, 'begin' | 'feed' | 'tell'> => ({
    stored: {
      agents: [agent()],
      sessions: [session()],
      comparisons: [],
      inbox: [],
      entries: [entry(1, { text: 'Hi' })],
      requests: [],
      queue: [],
    },
    calls: [],
    refuse: undefined,
    slow: undefined,
    forking: undefined,
  });
  const page = { ...untouched(), begin, feed, tell } as ReturnType<typeof fakePage>;

  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'requestAnimationFrame'] });
    localStorage.clear();
    Object.assign(page, untouched());
    await begin();
  });
  afterEach(() => {
    page.connection.close();
    vi.useRealTimers();
  });
  return page;
}

function answer(path: string, stored: Stored): unknown {
  const url = new URL(path, 'http://x');
  switch (url.pathname) {
    case '/client/hello':
      return { api: 1, version: '1', gen: 'g', places: [], features: [], home: '/home/ada' };
    case '/client/agents':
      return {
        items: url.searchParams.get('all') ? [...stored.agents, agent({ id: 'cline' })] : stored.agents,
      };
    case '/client/processes':
      return {
        items: [
          { owner: 'session', pid: 2, startedAt: '2026-11-21T14:00:00.000Z', rssBytes: 20, processes: [] },
        ],
        self: { pid: 1, startedAt: '2026-11-21T14:00:00.000Z', rssBytes: 10 },
      };
    case '/client/settings':
      return { memoryBudgetMiB: 4096 };
    case '/client/keyboard': // its keys stay with the page, for the files that run after this one
      return { path: '', version: '', bindings: [] };
    case '/client/logins/l1':
      return { ...login, state: 'done' };
    case '/client/inbox':
      return { items: stored.inbox };
    case '/client/comparisons':
      return { items: stored.comparisons };
    case '/client/sessions':
      return { items: stored.sessions };
    case '/client/sessions/s9':
      return session({ id: 's9', title: 'Far away' });
    case '/client/sessions/s1/queue':
      return { items: stored.queue };
    case '/client/sessions/s1/restore':
      return session();
    case '/client/sessions/s1/fork':
      return session({ id: 's2' });
    case '/client/sessions/s1/continue':
      return session({ id: 's3', agent: 'codex' });
  }
  if (url.pathname.endsWith('/entries'))
    return { items: stored.entries, turns: [], requests: stored.requests };
  return {};
}
