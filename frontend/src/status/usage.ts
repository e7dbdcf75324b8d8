import type { AgentProcesses, ProcessList, ProcessSum } from '../api/records';

// What the programs that run because of us take of the machine.

/** Whose programs are agents at work, and which program is only there to end the others. */
const agents: ReadonlySet<string> = new Set(['session', 'api']);
const watchdog = 'watchdog';

/** The sum of a list, as events tell it: 0 where the system does not tell. */
export function sumOf({ items, self }: ProcessList): ProcessSum {
  const memory = (of: ProcessList['items']) => of.reduce((all, one) => all + (one.rssBytes ?? 0), 0);
  return {
    agents: items.filter((one) => agents.has(one.owner)).length,
    processes: items.reduce((all, one) => all + Math.max(1, one.processes.length), 0),
    rssBytes: memory(items.filter((one) => one.owner !== 'watchdog')),
    selfRssBytes: (self.rssBytes ?? 0) + memory(items.filter((one) => one.owner === 'watchdog')),
  };
}

/** A list with the time when it was told: two of them make a rate. */
export interface Sample {
  at: number;
  list: ProcessList;
}

/**
 * How much of one core each program took between two samples, in percent, by its process id. A program that is in one of them only
 * has no rate; an id that was given to another program meanwhile has none either.
 */
export function rates(before: Sample | undefined, now: Sample): ReadonlyMap<number, number> {
  const found = new Map<number, number>();
  const seconds = before ? (now.at - before.at) / 1000 : 0;
  if (!before || seconds <= 0) return found;
  const all = (list: ProcessList) => [list.self, ...list.items];
  for (const one of all(now.list)) {
    const was = all(before.list).find((other) => other.pid === one.pid && other.startedAt === one.startedAt);
    if (one.cpuSeconds === undefined || was?.cpuSeconds === undefined) continue;
    found.set(one.pid, Math.max(0, ((one.cpuSeconds - was.cpuSeconds) / seconds) * 100));
  }
  return found;
}

/** The rows of the list: agents first, ours last, as the server has them. */
export function rowsOf(list: ProcessList): AgentProcesses[] {
  return [...list.items].sort((a, b) => Number(a.owner === watchdog) - Number(b.owner === watchdog));
}
