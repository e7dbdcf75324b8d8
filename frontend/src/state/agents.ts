import type { Agent, Installing, InstallProgress } from '../api/records';

// The agents that the window knows, and how events change them. Records are never changed in place, so a holder of an older record can
// compare by identity.

export interface AgentBook {
  /** Agents that are found here or well known. */
  readonly listed: readonly Agent[];
  /** The rest of the catalogue; undefined until somebody asks for it. */
  readonly more: readonly Agent[] | undefined;
  /** The last log line of each running installation by agent. Records do not contain it. */
  readonly logs: Readonly<Record<string, string>>;
}

export const emptyBook: AgentBook = { listed: [], more: undefined, logs: {} };

/** Returns the record of an agent in either list. */
export function agentIn(book: AgentBook, id: string): Agent | undefined {
  return book.listed.find((one) => one.id === id) ?? book.more?.find((one) => one.id === id);
}

/**
 * Applies the answer of a list call; `asked` is the book when the call was made. A record that an event has changed since is newer than the
 * answer and stays. Otherwise an installation that ended meanwhile would seem to run for ever.
 */
export function answered(
  book: AgentBook,
  asked: AgentBook,
  listed: readonly Agent[],
  all: readonly Agent[] | undefined,
): AgentBook {
  const newest = (agent: Agent): Agent => {
    const now = agentIn(book, agent.id);
    if (!now) return agent;
    return now !== agentIn(asked, agent.id) ? now : keepFailure(now, agent);
  };
  const ids = new Set(listed.map((one) => one.id));
  // An agent that came by an event during the call is missing from the answer.
  const since = book.listed.filter((one) => !ids.has(one.id) && agentIn(asked, one.id) === undefined);
  for (const one of since) ids.add(one.id);
  const more = all ?? book.more;
  return {
    listed: [...listed.map(newest), ...since],
    more: more?.filter((one) => !ids.has(one.id)).map(newest),
    logs: book.logs,
  };
}

/**
 * Keeps the failure of an installation. Only the event of the installation's end reports the failure; it is shown until the next
 * installation.
 */
function keepFailure(before: Agent, agent: Agent): Agent {
  if (!before.failure || agent.failure || agent.installing || agent.version !== before.version) return agent;
  return { ...agent, failure: before.failure };
}

/** Clears all failures, because a person has opened the list again. */
export function withoutFailures(book: AgentBook): AgentBook {
  const clear = (agent: Agent): Agent => {
    if (!agent.failure) return agent;
    const { failure: _, ...rest } = agent;
    return rest;
  };
  return { ...book, listed: book.listed.map(clear), more: book.more?.map(clear) };
}

/** Replaces a whole record. */
export function upsert(book: AgentBook, agent: Agent): AgentBook {
  return put(agent.installing ? book : { ...book, logs: without(book.logs, agent.id) }, agent);
}

function put(book: AgentBook, agent: Agent): AgentBook {
  const at = book.listed.findIndex((one) => one.id === agent.id);
  if (at >= 0) return { ...book, listed: book.listed.with(at, agent) };
  const among = book.more?.findIndex((one) => one.id === agent.id) ?? -1;
  if (book.more && among >= 0) return { ...book, more: book.more.with(among, agent) };
  return { ...book, listed: [...book.listed, agent] };
}

/** Applies the progress of an installation. */
export function progressed(book: AgentBook, news: InstallProgress): AgentBook {
  const { agent: id, log, ...installing } = news;
  const agent = agentIn(book, id);
  if (!agent) return book; // the agent's record will come with the same progress
  const { failure: _, ...rest } = agent;
  const next = put(book, { ...rest, installing });
  return log ? { ...next, logs: { ...next.logs, [id]: log } } : next;
}

function without(logs: AgentBook['logs'], id: string): AgentBook['logs'] {
  return id in logs ? Object.fromEntries(Object.entries(logs).filter(([key]) => key !== id)) : logs;
}

/** Returns how an installation ended, from the records before and after; undefined when none ended. */
export function ended(
  before: Agent | undefined,
  now: Agent,
): 'installed' | 'failed' | 'cancelled' | undefined {
  if (!before?.installing || now.installing) return undefined;
  if (now.failure) return 'failed';
  const changed = now.state === 'ready' && (before.state !== 'ready' || before.version !== now.version);
  return changed || before.installing.step === 'switch' ? 'installed' : 'cancelled';
}

/** Sorts agents: ready, in need of action, missing. Otherwise the server's order holds. */
export function inOrder(agents: readonly Agent[]): Agent[] {
  return [...agents].sort((a, b) => rank(a) - rank(b));
}

function rank(agent: Agent): number {
  switch (agent.state) {
    case 'ready':
      return agent.source === 'builtin' ? 3 : 0;
    case 'needs_login':
      return 1;
    case 'broken':
      return 2;
    case 'not_found':
      return 4;
  }
}

/** Keeps cards in their places while a person works with them; new agents follow. */
export function inPlace(agents: readonly Agent[], places: readonly string[]): Agent[] {
  const place = new Map(places.map((id, index) => [id, index]));
  const known = agents.filter((one) => place.has(one.id));
  known.sort((a, b) => (place.get(a.id) ?? 0) - (place.get(b.id) ?? 0));
  return [...known, ...inOrder(agents.filter((one) => !place.has(one.id)))];
}

export type AgentAction = 'install' | 'update' | 'rollback' | 'remove' | 'test' | 'login' | 'edit';

/** Returns the possible actions for an agent in its state. */
export function actionsOf(agent: Agent): AgentAction[] {
  if (agent.installing) return [];
  const actions: AgentAction[] = [];
  const ours = agent.source === 'installed';
  if (agent.installable && (agent.state === 'not_found' || (ours && agent.state === 'broken')))
    actions.push('install');
  else if (agent.installable && hasUpdate(agent)) actions.push('update');
  if (agent.state !== 'not_found') actions.push('test');
  // The built-in demo agent has no login.
  if (agent.source !== 'builtin' && (agent.state === 'ready' || agent.state === 'needs_login'))
    actions.push('login');
  if (agent.editable) actions.push('edit');
  if (agent.previous) actions.push('rollback');
  if (ours) actions.push('remove');
  return actions;
}

/** Reports whether the catalogue has a later version than the version that would be started. */
export function hasUpdate(agent: Agent): boolean {
  return agent.version !== undefined && agent.pinned !== undefined && later(agent.pinned, agent.version);
}

/** Reports whether version a is later than version b, by semver. */
export function later(a: string, b: string): boolean {
  const [x, y] = [parts(a), parts(b)];
  if (!x || !y) return false;
  for (let i = 0; i < 3; i++) {
    const [p, q] = [x.core[i] ?? 0, y.core[i] ?? 0];
    if (p !== q) return p > q;
  }
  if (!x.pre || !y.pre) return !x.pre && y.pre !== '';
  return x.pre.localeCompare(y.pre, 'en', { numeric: true }) > 0;
}

function parts(version: string): { core: number[]; pre: string } | undefined {
  const found = /^v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+.*)?$/.exec(version);
  return found ? { core: found.slice(1, 4).map(Number), pre: found[4] ?? '' } : undefined;
}

export const installSteps = ['resolve', 'download', 'verify', 'switch'] as const;

/** Returns the downloaded share from 0 to 1; undefined where the total is unknown. The registry's total is an estimate. */
export function shareOf(installing: Installing): number | undefined {
  const { step, bytes = 0, total = 0 } = installing;
  if (step !== 'download' || total <= 0) return undefined;
  return Math.min(bytes / total, 1);
}
