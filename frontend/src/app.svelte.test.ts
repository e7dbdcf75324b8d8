import { flushSync } from 'svelte';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { App } from './app.svelte';
import { Client } from './api/client';
import { ApiError } from './api/errors';
import { pace } from './api/events';
import type { Agent, EventBatch, Login, QueueItem, Request, Session } from './api/records';
import { compose, shared } from './state/state';
import { agent, entry, event, queued, request, session } from './test/records';

// The whole store over a server that is played here: what it asks for, and what it makes of the answers.

type Handler = (path: string, init: RequestInit | undefined) => unknown;

let app: App;
let { toasts, catalogue, logins, machine, preferences } = shared;
let fetched: typeof fetch;
let batches: ((batch: EventBatch) => void)[];
let server: {
  agents: Agent[];
  sessions: Session[];
  inbox: Request[];
  entries: unknown[];
  requests: Request[];
};
/** Pages of entries take this long. */
let slow: Promise<void> | undefined;
/** A fork takes this long. */
let forking: Promise<void> | undefined;
let calls: { path: string; method: string; body: unknown }[];
let refuse: Handler | undefined;
let queue: QueueItem[] = [];

const login: Login = {
  id: 'l1',
  agent: 'claude',
  method: 'm',
  type: 'agent',
  state: 'running',
  startedAt: '2026-11-21T14:00:00.000Z',
};

const answer = (path: string): unknown => {
  const url = new URL(path, 'http://x');
  if (url.pathname === '/client/hello')
    return { api: 1, version: '1', gen: 'g', places: [], features: [], home: '/home/ada' };
  if (url.pathname === '/client/agents')
    return {
      items: url.searchParams.get('all') ? [...server.agents, agent({ id: 'cline' })] : server.agents,
    };
  if (url.pathname === '/client/processes')
    return {
      items: [
        { owner: 'session', pid: 2, startedAt: '2026-11-21T14:00:00.000Z', rssBytes: 20, processes: [] },
      ],
      self: { pid: 1, startedAt: '2026-11-21T14:00:00.000Z', rssBytes: 10 },
    };
  if (url.pathname === '/client/settings') return { memoryBudgetMiB: 4096 };
  // The keys that are told stay with the page, for the files that run after this one.
  if (url.pathname === '/client/keyboard') return { path: '', version: '', bindings: [] };
  if (url.pathname === '/client/logins/l1') return { ...login, state: 'done' };
  if (url.pathname === '/client/inbox') return { items: server.inbox };
  if (url.pathname === '/client/sessions') return { items: server.sessions };
  if (url.pathname === '/client/sessions/s9') return session({ id: 's9', title: 'Far away' });
  if (url.pathname === '/client/sessions/s1/queue') return { items: queue };
  if (url.pathname === '/client/sessions/s1/restore') return session();
  if (url.pathname === '/client/sessions/s1/fork') return session({ id: 's2' });
  if (url.pathname === '/client/sessions/s1/continue') return session({ id: 's3', agent: 'codex' });
  if (url.pathname.endsWith('/entries'))
    return { items: server.entries, turns: [], requests: server.requests };
  return {};
};

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'requestAnimationFrame'] });
  localStorage.clear();
  batches = [];
  calls = [];
  refuse = undefined;
  server = {
    agents: [agent()],
    sessions: [session()],
    inbox: [],
    entries: [entry(1, { text: 'Hi' })],
    requests: [],
  };
  slow = undefined;
  forking = undefined;
  fetched = ((path: string, init?: RequestInit) => {
    calls.push({
      path,
      method: init?.method ?? 'GET',
      body: init?.body ? JSON.parse(init.body as string) : undefined,
    });
    const refused = refuse?.(path, init) as { status?: number } | undefined;
    if (refused)
      return Promise.resolve(new Response(JSON.stringify(refused), { status: refused.status ?? 409 }));
    if (path.startsWith('/client/events')) {
      return new Promise<Response>((done) =>
        batches.push((batch) => done(new Response(JSON.stringify(batch), { status: 200 }))),
      );
    }
    const answered = () => new Response(JSON.stringify(answer(path)), { status: 200 });
    if (forking && path.endsWith('/fork')) return forking.then(answered);
    return slow && path.includes('/entries') ? slow.then(answered) : Promise.resolve(answered());
  }) as typeof fetch;
  await begin();
});

/** The page begins. */
async function begin() {
  batches = [];
  const state = compose(new Client({ fetch: fetched, surface: 'browser', storage: sessionStorage }));
  ({ toasts, catalogue, logins, machine, preferences } = state);
  app = new App(state);
  void app.start('', () => undefined);
  await feed({ gen: 'g', seq: 1, reset: true, events: [] });
}

afterEach(() => {
  app.close();
  vi.useRealTimers();
});

async function feed(batch: EventBatch) {
  await vi.advanceTimersByTimeAsync(0);
  if (batches.length === 0) await vi.advanceTimersByTimeAsync(pace); // of what comes closely
  batches.shift()?.(batch);
  await vi.advanceTimersByTimeAsync(20);
  flushSync();
}

const tell = (type: string, data: unknown, seq: number) =>
  feed({ gen: 'g', seq, events: [{ ...event(type, data), seq }] });

test('what the status bar shows is asked for once the conversations are there', () => {
  const paths = calls.map((call) => call.path);
  const last = Math.max(
    ...['/client/hello', '/client/inbox', '/client/settings'].map((path) => paths.indexOf(path)),
  );
  expect(paths.slice(0, last)).not.toContain('/client/storage');
  expect(paths.slice(last)).toEqual(expect.arrayContaining(['/client/storage', '/client/processes']));
});

test('snapshots are loaded before anything is followed', () => {
  expect(app.loaded).toBe(true);
  expect(app.link).toBe('live');
  expect(app.ordered.map((one) => one.id)).toEqual(['s1']);
});

test('the conversation that was open last is opened again, unless it was put away', async () => {
  app.show({ name: 'session', id: 's1' });
  await feed({ gen: 'g2', seq: 1, reset: true, events: [] });
  expect(app.view).toEqual({ name: 'session', id: 's1' });
  expect(localStorage.getItem('deskhand.last')).toBe('s1');
});

test('a conversation that was open in two pages that did not live is left to the person', async () => {
  app.show({ name: 'session', id: 's1' });
  for (const opened of [true, true, false]) {
    app.close();
    await begin();
    expect(app.view.name).toBe(opened ? 'session' : 'new');
  }
  expect(toasts.list.map(({ text }) => text)).toEqual([
    '“Fix login” was not reopened: the window ended twice with it. It is in the list.',
  ]);
  app.close();
  await begin();
  expect(app.view.name).toBe('new');
  app.show({ name: 'session', id: 's1' });
  app.close();
  await begin();
  expect(app.view.name).toBe('session');
});

test('events change sessions, and the transcript that is open', async () => {
  app.show({ name: 'session', id: 's1' });
  await vi.advanceTimersByTimeAsync(0);
  await tell('entry.append', { id: 'e1', field: 'text', text: ' there', offset: 2 }, 2);
  expect(app.panes.current?.view?.items[0]?.text).toBe('Hi there');
  await tell('session.upsert', session({ phase: 'working', title: 'New' }), 3);
  expect(app.running).toBe(1);
  expect(app.current?.title).toBe('New');
});

test('requests wait in the inbox until somebody answers them anywhere', async () => {
  await tell('request.upsert', request(), 2);
  expect(app.inbox.map((one) => one.id)).toEqual(['r1']);
  expect(toasts.announcement).toBe('Needs approval: Edit app.ts');
  await tell('request.upsert', request({ status: 'answered', answeredBy: 'window' }), 3);
  expect(app.inbox).toEqual([]);
});

test('a request that is answered while a page with it is under way does not wait again', async () => {
  await tell('request.upsert', request(), 2);
  let arrives!: () => void;
  slow = new Promise((done) => (arrives = done));
  app.transcript('s1');
  await tell('request.upsert', request({ status: 'answered', answeredBy: 'window' }), 3);
  server.requests = [request()];
  arrives();
  await vi.advanceTimersByTimeAsync(0);
  expect(app.transcript('s1').items).toHaveLength(1);
  expect(app.inbox).toEqual([]);
});

test('after a gap the inbox is that of the snapshot', async () => {
  await tell('request.upsert', request(), 2);
  await feed({ gen: 'g', seq: 90, reset: true, events: [] });
  expect(app.inbox).toEqual([]);
});

test('after a gap a request that was answered meanwhile waits no more where its conversation is open, though no page tells how', async () => {
  app.show({ name: 'session', id: 's1' });
  await tell('request.upsert', request(), 2);
  await feed({ gen: 'g', seq: 90, reset: true, events: [] });
  expect(app.inbox).toEqual([]);
  await tell('request.upsert', request(), 91); // one that began while the snapshots were read
  expect(app.inbox).toHaveLength(1);
});

test('a request that is asked again after the program has died waits again', async () => {
  app.show({ name: 'session', id: 's1' });
  await tell('request.upsert', request(), 2);
  await tell('request.upsert', request({ status: 'answered', answeredBy: 'window' }), 3);
  expect(app.inbox).toEqual([]);
  server.inbox = server.requests = [request()];
  await feed({ gen: 'g2', seq: 1, reset: true, events: [] });
  expect(app.inbox.map((one) => one.id)).toEqual(['r1']);
});

test('where one pane has room the others are not seen, until they are shown', async () => {
  server.sessions = [session(), session({ id: 's2' })];
  await feed({ gen: 'g', seq: 1, reset: true, events: [] });
  app.show({ name: 'session', id: 's1' });
  app.panes.split('s2');
  const read = (id: string) =>
    calls.filter((call) => call.method === 'PATCH' && call.path.endsWith(`/${id}`)).length;
  app.narrow = true;
  await tell('session.upsert', session({ id: 's1', unread: true }), 2);
  expect(read('s1')).toBe(0);
  app.visible();
  expect(read('s1')).toBe(0);
  await tell('session.upsert', session({ id: 's2', unread: true }), 3);
  expect(read('s2')).toBe(1);
  app.narrow = false;
  app.visible(); // the window has become wider
  expect(read('s1')).toBe(1);
  app.narrow = true;
  app.panes.step('left');
  await vi.advanceTimersByTimeAsync(0);
  expect(read('s1')).toBe(2);
});

test('what is new in the conversation that is looked at is seen', async () => {
  app.show({ name: 'session', id: 's1' });
  await tell('session.upsert', session({ unread: true }), 2);
  expect(calls.at(-1)).toMatchObject({ method: 'PATCH', body: { unread: false } });
});

test('the end of a turn is announced', async () => {
  const running = { id: 't1', session: 's1', state: 'running' as const, startedAt: '' };
  await tell('session.upsert', session({ turn: running }), 2);
  await tell('session.upsert', session(), 3);
  expect(toasts.announcement).toBe('Demo agent finished: Fix login');
});

test('what is queued follows the events, and is loaded again after a gap', async () => {
  const waits = () => app.queue('s1').items.map((item) => item.id);
  queue = [queued(0)];
  waits();
  await vi.advanceTimersByTimeAsync(0);
  expect(waits()).toEqual(['q0']);
  await tell('queue.upsert', queued(1), 2);
  expect(waits()).toEqual(['q0', 'q1']);
  await tell('queue.removed', { id: 'q0' }, 3);
  expect(waits()).toEqual(['q1']);
  queue = [queued(2)];
  await feed({ gen: 'g2', seq: 1, reset: true, events: [] });
  expect(waits()).toEqual(['q2']);
});

test('what is queued and could not be read is read again until it is, and then follows the events', async () => {
  const waits = () => app.queue('s1').items.map((item) => item.id);
  queue = [queued(0), queued(1)];
  refuse = (path) => path.endsWith('/queue') && { code: 'storage.failed', status: 503 };
  waits();
  await vi.advanceTimersByTimeAsync(3_000);
  expect(toasts.list).toHaveLength(1);
  await tell('queue.removed', { id: 'q0' }, 2);
  queue = [queued(1)];
  refuse = undefined;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(waits()).toEqual(['q1']);
  await tell('queue.upsert', queued(2), 3);
  expect(waits()).toEqual(['q1', 'q2']);
  const asked = () => calls.filter(({ path }) => path.endsWith('/queue')).length;
  const before = asked();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked()).toBe(before);
});

test('a change of what is queued tells whether it was taken', async () => {
  expect(await app.changeQueued('s1', 'q0', { message: 'better' })).toBe(true);
  refuse = () => ({ code: 'queue.gone', status: 409 });
  expect(await app.changeQueued('s1', 'q0', { message: 'better' })).toBe(false);
  expect(toasts.list.at(-1)?.text).toContain('no longer in the queue');
});

test('what was deleted from the queue can be taken back', async () => {
  await app.removeQueued('s1', 'q0');
  expect(calls.at(-1)).toMatchObject({ method: 'DELETE', path: '/client/sessions/s1/queue/q0' });
  toasts.list.at(-1)?.undo?.();
  await vi.advanceTimersByTimeAsync(0);
  expect(calls.at(-1)).toMatchObject({ method: 'POST', path: '/client/sessions/s1/queue/q0/restore' });
});

test('a conversation that is gone does not keep the others from loading', async () => {
  app.show({ name: 'session', id: 's1' });
  await vi.advanceTimersByTimeAsync(0);
  refuse = (path) => path.includes('/entries') && { code: 'not_found', status: 404 };
  await feed({ gen: 'g2', seq: 1, reset: true, events: [] });
  expect(app.link).toBe('live');
  expect(app.panes.current?.view?.error?.code).toBe('not_found');
});

describe('a conversation that is shown, and in no list after a gap,', () => {
  const gap = async (seq = 90) => {
    server.sessions = [];
    await feed({ gen: 'g', seq, reset: true, events: [] });
  };

  test('is as it is now', async () => {
    await app.open('s9');
    await tell('session.upsert', session({ id: 's9', title: 'Before', phase: 'working' }), 2);
    await gap();
    expect(app.link).toBe('live');
    expect(app.current).toMatchObject({ title: 'Far away', phase: 'ready' });
  });

  test('is gone when it was deleted, and stays when nobody can tell', async () => {
    app.show({ name: 'session', id: 's1' });
    refuse = (path) => path.endsWith('/s1') && { code: 'storage.newer_unreadable', status: 409 };
    await gap();
    expect(app.view.name).toBe('session');
    refuse = (path) => path.includes('/s1') && { code: 'not_found', status: 404 };
    await gap(91);
    expect([app.link, app.sessions.size, app.view.name]).toEqual(['live', 0, 'new']);
  });
});

test('a page begins with one look at the conversation that was open last', async () => {
  app.show({ name: 'session', id: 's1' });
  app.close();
  calls = [];
  await begin();
  expect(calls.filter(({ path }) => path.includes('/entries'))).toHaveLength(1);
});

describe('answers', () => {
  test('go by the kind of the request', async () => {
    await app.answer(request(), { optionId: 'yes' });
    await app.answer(request({ id: 'r2', kind: 'question' }), { answers: [['a']] });
    await app.answer(request({ id: 'r3', kind: 'question' }), { reject: true });
    expect(calls.slice(-3).map(({ path, body }) => [path, body])).toEqual([
      ['/client/requests/r1/answer', { optionId: 'yes' }],
      ['/client/sessions/s1/questions/r2/reply', { answers: [['a']] }],
      ['/client/sessions/s1/questions/r3/reject', undefined],
    ]);
  });

  test('that come second are told and done with', async () => {
    let params: Record<string, string> = {};
    refuse = (path) => path.endsWith('/answer') && { code: 'request.resolved', params };
    const told = async (status: string, answeredBy = '') => {
      params = { status, answeredBy };
      await expect(app.answer(request(), { optionId: 'yes' })).resolves.toBe(false);
      return toasts.list.at(-1)?.text;
    };
    expect(await told('answered', 'cli')).toBe('Too late: this was answered from the command line.');
    expect(await told('rejected', 'browser')).toBe('Too late: this was declined from a browser.');
    expect(await told('cancelled')).toBe('Too late: the agent withdrew it.');
    expect(await told('expired')).toBe('Too late: its agent has ended.');
    expect(await told('answered', 'unheard of')).toBe('This was already answered.');
  });

  test('that fail are thrown, so that what was filled in can stay', async () => {
    refuse = (path) => path.endsWith('/answer') && { code: 'answer.invalid', params: { detail: 'x' } };
    await expect(app.answer(request(), { optionId: 'yes' })).rejects.toBeInstanceOf(ApiError);
    expect(toasts.list).toHaveLength(1);
  });
});

describe('agents', () => {
  test('are installed by what events tell, and the end is announced', async () => {
    await catalogue.perform(agent({ pinned: '0.100.0' }), 'install');
    expect(calls.at(-1)).toMatchObject({
      path: '/client/agents/claude/install',
      body: { version: '0.100.0' },
    });
    await tell('install.progress', { agent: 'claude', step: 'download', bytes: 5, log: 'npm' }, 2);
    expect(catalogue.agents[0]?.installing).toEqual({ step: 'download', bytes: 5 });
    await tell('agent.upsert', agent({ state: 'ready', version: '0.100.0' }), 3);
    expect(catalogue.agents[0]).not.toHaveProperty('installing');
    expect(toasts.announcement).toBe('Claude Code is installed');
  });

  test('that are being installed are so after the page was loaded again', async () => {
    server.agents = [agent({ installing: { step: 'download', bytes: 5 } })];
    await feed({ gen: 'g', seq: 90, reset: true, events: [] });
    expect(catalogue.agents[0]?.installing?.step).toBe('download');
  });

  test('of the rest of the catalogue come when they are asked for, and are kept up to date', async () => {
    expect(catalogue.book.more).toBeUndefined();
    await catalogue.loadRest();
    expect(catalogue.book.more?.map((one) => one.id)).toEqual(['cline']);
    await feed({ gen: 'g', seq: 90, reset: true, events: [] });
    expect(calls.map((call) => call.path)).toContain('/client/agents?all=true');
    expect(catalogue.book.more?.map((one) => one.id)).toEqual(['cline']);
  });

  test('are removed and cancelled by the calls for it; what is refused is thrown to the card', async () => {
    await catalogue.perform(agent(), 'cancel');
    await catalogue.perform(agent(), 'remove');
    expect(calls.slice(-2).map(({ method, path }) => [method, path])).toEqual([
      ['DELETE', '/client/agents/claude/install'],
      ['DELETE', '/client/agents/claude'],
    ]);
    refuse = () => ({ code: 'agent.in_use', params: { agent: 'claude' } });
    await expect(catalogue.perform(agent(), 'remove')).rejects.toMatchObject({ code: 'agent.in_use' });
    expect(toasts.list).toEqual([]);
  });
});

describe('what the server cannot write', () => {
  const notice = async (data: object, seq: number) => {
    await tell('notice', data, seq);
    await vi.dynamicImportSettled();
    flushSync();
  };

  test('is told while it lasts, and once in words', async () => {
    const saved = app.savedAt;
    for (const seq of [2, 3]) await notice({ code: 'storage.failed', detail: 'disk is full' }, seq);
    expect([...app.stalls]).toEqual([['s1', 'disk is full']]);
    expect(app.savedAt).toBe(saved);
    expect(toasts.list.map(({ text, tone }) => [text, tone])).toEqual([
      ['Nothing can be saved: disk is full. It goes on by itself once the disk takes it.', 'danger'],
    ]);
    await notice({ code: 'storage.works' }, 4);
    expect(app.stalls.size).toBe(0);
    await notice({ code: 'storage.failed', detail: 'disk is full' }, 5);
    await feed({ gen: 'g2', seq: 1, reset: true, events: [] });
    expect(app.stalls.size).toBe(0);
  });

  test('and what cannot be read any more, is said', async () => {
    await notice({ code: 'journal.damaged', detail: 'frame 3' }, 2);
    expect(toasts.list.map(({ text }) => text)[0]).toContain(
      'The journal of “Fix login” is damaged: frame 3.',
    );
  });
});

describe('the machine', () => {
  test('is told by the snapshots, then by events', async () => {
    expect(machine.processes).toEqual({ agents: 1, processes: 1, rssBytes: 20, selfRssBytes: 10 });
    expect(preferences.settings?.memoryBudgetMiB).toBe(4096);
    await tell('process.upsert', { agents: 2, processes: 5, rssBytes: 50, selfRssBytes: 11 }, 2);
    expect(machine.processes?.agents).toBe(2);
    await tell('settings.upsert', { memoryBudgetMiB: 0 }, 3);
    expect(preferences.settings?.memoryBudgetMiB).toBe(0);
  });

  test('that does not tell keeps nobody from their conversations', async () => {
    refuse = (path) => (/processes|settings/.test(path) ? { code: 'internal' } : undefined);
    server.sessions = [session({ id: 's2' })];
    await feed({ gen: 'g2', seq: 1, reset: true, events: [] });
    expect(app.link).toBe('live');
    expect(app.ordered.map((one) => one.id)).toEqual(['s2']);
  });
});

test('a login is followed by events, and asked for again after a gap', async () => {
  await tell('login.upsert', login, 2);
  expect(logins.byId.get('l1')?.state).toBe('running');
  await feed({ gen: 'g2', seq: 1, reset: true, events: [] });
  expect(logins.byId.get('l1')?.state).toBe('done');
});

describe('a place that was found', () => {
  const paths = () => calls.map(({ path }) => path).filter((path) => path.includes('/entries'));

  test('is loaded in place of the tail, and its conversation too when no list has brought it', async () => {
    await app.open('s9', { seq: 40, look: 'found' });
    await vi.advanceTimersByTimeAsync(0);
    expect(app.view).toEqual({ name: 'session', id: 's9', at: { seq: 40, look: 'found' } });
    expect(app.current?.title).toBe('Far away');
    expect(paths()).toEqual(['/client/sessions/s9/entries?around=40&limit=60']);
  });

  test('is left for the tail when its conversation is opened as usual', async () => {
    const view = app.transcript('s1', 40);
    await vi.advanceTimersByTimeAsync(0);
    view.newer = 41;
    app.show({ name: 'session', id: 's1' });
    await vi.advanceTimersByTimeAsync(0);
    expect(paths()).toEqual([
      '/client/sessions/s1/entries?around=40&limit=60',
      '/client/sessions/s1/entries?limit=60',
    ]);
    app.show({ name: 'session', id: 's1' });
    await vi.advanceTimersByTimeAsync(0);
    expect(paths()).toHaveLength(2);
  });

  test('of a conversation that is gone is said, and what is shown stays', async () => {
    refuse = (path) => path.endsWith('/s9') && { code: 'session.gone' };
    await app.open('s9', { seq: 40, look: 'found' });
    expect(app.view).toEqual({ name: 'new' });
    expect(toasts.list).toHaveLength(1);
  });

  test('the search leads back to where the person was', () => {
    app.show({ name: 'session', id: 's1' });
    app.search(7);
    const back = { name: 'session', id: 's1', at: { seq: 7, look: 'place' } };
    expect(app.view).toEqual({ name: 'search', back });
    const before = app.view;
    app.search();
    expect(app.view).toEqual({ name: 'search', back });
    expect(app.view).not.toBe(before);
    app.show({ name: 'inbox' });
    app.search();
    expect(app.view).toEqual({ name: 'search', back: { name: 'inbox' } });
  });
});

test('what could not be put away is not said to be, and a conversation that begins late takes nobody away', async () => {
  app.show({ name: 'session', id: 's1' });
  refuse = (_, init) => init?.method === 'PATCH' && { code: 'storage', status: 409 };
  await app.archive(session());
  expect(toasts.list).toHaveLength(1); // what went wrong
  expect(toasts.list[0]?.undo).toBeUndefined();
  expect(app.view).toEqual({ name: 'session', id: 's1' });
  refuse = undefined;
  app.show({ name: 'new' });
  const begun = app.create('claude', '/');
  app.show({ name: 'session', id: 's1' });
  await begun;
  expect(app.view).toEqual({ name: 'session', id: 's1' });
});

test('archiving offers to undo it for five seconds', async () => {
  app.show({ name: 'session', id: 's1' });
  await app.archive(session());
  expect(calls.at(-1)?.body).toEqual({ archived: true });
  expect(app.view.name).toBe('new');
  toasts.list[0]?.undo?.();
  expect(calls.at(-1)?.body).toEqual({ archived: false });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(toasts.list).toEqual([]);
});

test('what is put away is held while it is shown, works, or is listed', async () => {
  const held = () => [...app.sessions.keys()];
  const away = (part: Partial<Session>) => ({
    ...session({ archivedAt: '2026-11-21T15:00:00.000Z' }),
    ...part,
  });
  app.show({ name: 'session', id: 's1' });
  await tell('session.upsert', away({}), 2);
  expect(held()).toEqual(['s1']);
  await app.archive(session());
  expect(held()).toEqual([]);
  expect(app.sessions.count).toBe(1);
  await tell('session.upsert', away({ waiting: 1 }), 3);
  expect(held()).toEqual(['s1']);
  await tell('session.upsert', away({}), 4);
  expect(held()).toEqual([]);
  server.sessions = [away({})];
  await app.setShowArchived(true);
  await tell('session.upsert', away({}), 5);
  expect(held()).toEqual(['s1']);
  await app.setShowArchived(false);
  expect(held()).toEqual([]);
  await tell('session.upsert', session(), 6); // it is back
  expect(held()).toEqual(['s1']);
  expect(app.sessions.count).toBe(1);
  await tell('session.upsert', away({}), 7);
  await tell('session.removed', { id: 's1' }, 8);
  expect(app.sessions.count).toBe(0);
});

describe('a deleted conversation', () => {
  test('is gone from everything that shows it, and offers to come back', async () => {
    app.show({ name: 'session', id: 's1' });
    await tell('request.upsert', request(), 2);
    await app.delete(session());
    expect(calls.at(-1)).toMatchObject({ method: 'DELETE', path: '/client/sessions/s1' });
    await tell('session.removed', { id: 's1' }, 3);
    expect([app.sessions.size, app.inbox.length, app.view.name]).toEqual([0, 0, 'new']);
    expect(localStorage.getItem('deskhand.last')).toBeNull();
    toasts.undo();
    await vi.advanceTimersByTimeAsync(0);
    expect(calls.some((call) => call.path === '/client/sessions/s1/restore')).toBe(true);
    expect(toasts.list).toEqual([]);
  });

  test('is not where the search leads back to', async () => {
    app.show({ name: 'session', id: 's1' });
    app.search();
    await tell('session.removed', { id: 's1' }, 2);
    expect(app.view).toEqual({ name: 'search', back: { name: 'new' } });
  });

  test('that could not be deleted stays', async () => {
    refuse = (path) => path.endsWith('/s1') && { code: 'storage.failed' };
    await app.delete(session());
    expect(toasts.list.map((toast) => [toast.tone, toast.undo])).toEqual([['danger', undefined]]);
  });
});

test('a fork is shown, unless the person has gone elsewhere meanwhile', async () => {
  app.show({ name: 'session', id: 's1' });
  await app.fork(session());
  expect(app.view).toEqual({ name: 'session', id: 's2' });
  app.show({ name: 'session', id: 's1' });
  const begun = app.continueWith(session(), 'codex');
  app.show({ name: 'inbox' });
  await begun;
  expect(app.view).toEqual({ name: 'inbox' });
  expect(app.sessions.get('s3')?.agent).toBe('codex');
});

describe('a conversation that begins slowly', () => {
  const slowly = () => {
    let made = (): void => undefined;
    forking = new Promise((done) => (made = done));
    return () => made();
  };
  const asked = () => calls.filter(({ path }) => path === '/client/sessions/s1/fork').length;

  test('says so until it is there, and is begun once', async () => {
    const made = slowly();
    app.show({ name: 'session', id: 's1' });
    const begun = app.fork(session({ title: 'Fix login' }));
    await app.fork(session());
    await vi.advanceTimersByTimeAsync(900);
    expect(toasts.list).toEqual([]);
    await vi.advanceTimersByTimeAsync(60_000);
    for (const text of ['one', 'two', 'three']) toasts.show({ text, tone: 'info' });
    expect(toasts.list.map(({ text }) => text)).toEqual(['Forking “Fix login”…', 'one', 'two', 'three']);
    made();
    await begun;
    expect(toasts.list.some(({ cancel }) => cancel)).toBe(false);
    expect([asked(), app.view]).toEqual([1, { name: 'session', id: 's2' }]);
    await app.fork(session());
    expect(asked()).toBe(2);
  });

  test('is deleted when it comes after it was given up', async () => {
    const made = slowly();
    app.show({ name: 'session', id: 's1' });
    const begun = app.fork(session());
    await vi.advanceTimersByTimeAsync(1_000);
    toasts.list[0]?.cancel?.();
    expect(calls.some(({ method }) => method === 'DELETE')).toBe(false);
    made();
    await begun;
    expect(calls.some(({ path, method }) => path === '/client/sessions/s2' && method === 'DELETE')).toBe(
      true,
    );
    expect(app.view).toEqual({ name: 'session', id: 's1' });
    expect(toasts.list.some(({ cancel }) => cancel)).toBe(false);
  });
});

test('what is kept and what is verified is told by events', async () => {
  await tell('storage.upsert', { sessions: 7, rebuilding: { done: 1, total: 7 } }, 2);
  await tell('verify.upsert', { state: 'running', done: 1, total: 7, findings: [] }, 3);
  expect([machine.storage?.rebuilding?.done, machine.verification?.state]).toEqual([1, 'running']);
});

test('how the line to Discord is comes with the start and by events', async () => {
  expect(calls.some(({ path }) => path === '/client/discord')).toBe(true);
  await tell('discord.upsert', { enabled: true, status: 'reconnecting' }, 2);
  expect(machine.discord?.status).toBe('reconnecting');
});

test('the window writes what is exported, and says where', async () => {
  const SaveExport = vi.fn(() => Promise.resolve('/home/ada/a.md'));
  (window as { go?: unknown }).go = { app: { Files: { SaveExport } } };
  await app.export(session(), 'md');
  expect(SaveExport).toHaveBeenCalledWith(
    'Save the conversation as Markdown',
    '/client/sessions/s1/export?format=md',
  );
  expect(toasts.list.at(-1)?.text).toBe('Saved as /home/ada/a.md');
  SaveExport.mockResolvedValueOnce(''); // the person wants none
  await app.export(session(), 'json');
  expect(toasts.list).toHaveLength(1);
  delete (window as { go?: unknown }).go;
});
