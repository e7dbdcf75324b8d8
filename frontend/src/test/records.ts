import type {
  Agent,
  Append,
  Entry,
  Event,
  Hit,
  QueueItem,
  Request,
  Session,
  ToolCall,
  Turn,
} from '../api/records';

// Complete records for tests. A test overrides only the fields that matter to it.

const at = '2026-11-21T14:00:00.000Z';

export function session(part: Partial<Session> = {}): Session {
  return {
    id: 's1',
    title: 'Fix login',
    labels: [],
    pinned: false,
    place: 'local',
    workspace: { id: 'w1', path: '/home/ada/app' },
    cwd: '/home/ada/app',
    agent: 'mock',
    agentName: 'Demo agent',
    generation: 1,
    phase: 'ready',
    directories: [],
    offers: [],
    queue: 0,
    waiting: 0,
    configOptions: [],
    commands: [],
    attachments: [],
    unread: false,
    draft: '',
    createdAt: at,
    updatedAt: at,
    ...part,
  };
}

export function entry(seq: number, part: Partial<Entry> = {}): Entry {
  return { id: `e${seq}`, session: 's1', generation: 1, seq, at, kind: 'agent', ...part };
}

export function queued(position: number, part: Partial<QueueItem> = {}): QueueItem {
  return {
    id: `q${position}`,
    session: 's1',
    message: `prompt ${position}`,
    position,
    createdAt: at,
    ...part,
  };
}

export function turn(part: Partial<Turn> = {}): Turn {
  return { id: 't1', session: 's1', state: 'done', startedAt: at, ...part };
}

export function tool(part: Partial<ToolCall> = {}): ToolCall {
  return { toolCallId: 'c1', title: 'Tool', kind: 'other', status: 'completed', startedAt: at, ...part };
}

export function request(part: Partial<Request> = {}): Request {
  return {
    id: 'r1',
    session: 's1',
    generation: 1,
    kind: 'permission',
    agent: 'Demo agent',
    title: 'Edit app.ts',
    options: [],
    status: 'requested',
    createdAt: at,
    ...part,
  };
}

export function agent(part: Partial<Agent> = {}): Agent {
  return {
    id: 'claude',
    name: 'Claude Code',
    state: 'not_found',
    source: 'path',
    installable: true,
    editable: false,
    ...part,
  };
}

export function hit(n: number, part: Partial<Hit> = {}): Hit {
  return {
    session: 's1',
    title: 'Fix login',
    agent: 'mock',
    agentName: 'Demo agent',
    workspace: { id: 'w1', path: '/home/ada/app' },
    entry: `e${n}`,
    seq: n,
    kind: 'agent',
    at,
    excerpt: [{ text: `entry ${n}` }],
    ...part,
  };
}

let seq = 0;

export function event(type: string, data: unknown): Event {
  return { seq: ++seq, at, session: 's1', type, data };
}

export const upsert = (data: Entry) => event('entry.upsert', data);
export const append = (id: string, text: string, offset: number) =>
  event('entry.append', { id, field: 'text', text, offset } satisfies Append);
