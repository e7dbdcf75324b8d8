import type { AgentProcesses, ProcessList, ProcessSum } from '../api/records';

// The processor time and memory of the programs that Deskhand has started.

/** The owners of agent processes, and the watchdog, which only ends other processes. */
const agents: ReadonlySet<string> = new Set(['session', 'api']);
const watchdog = 'watchdog';

/** Sums up a list like the server's event: 0 where the system gives no value. */
export function sumOf({ items, self }: ProcessList): ProcessSum {
  const memory = (of: ProcessList['items']) => of.reduce((all, one) => all + (one.rssBytes ?? 0), 0);
  return {
    agents: items.filter((one) => agents.has(one.owner)).length,
    processes: items.reduce((all, one) => all + Math.max(1, one.processes.length), 0),
    rssBytes: memory(items.filter((one) => one.owner !== 'watchdog')),
    selfRssBytes: (self.rssBytes ?? 0) + memory(items.filter((one) => one.owner === 'watchdog')),
  };
}

/** A list with its time. Two samples give a rate. */
export interface Sample {
  at: number;
  list: ProcessList;
}

/** A program of a list, with all its processes, or one process. */
interface Measured {
  pid: number;
  startedAt: string;
  cpuSeconds?: number;
}

/** Returns all programs of a list. */
const programsOf = (list: ProcessList): readonly Measured[] => [list.self, ...list.items];

/**
 * Returns each program's share of one core between two samples, in percent, by pid. A program in only one of the samples has no rate, nor
 * has a pid that another program has taken. of returns what is measured of a list.
 */
export function rates(before: Sample | undefined, now: Sample, of = programsOf): ReadonlyMap<number, number> {
  const found = new Map<number, number>();
  const seconds = before ? (now.at - before.at) / 1000 : 0;
  if (!before || seconds <= 0) return found;
  const earlier = of(before.list);
  for (const one of of(now.list)) {
    const was = earlier.find((other) => other.pid === one.pid && other.startedAt === one.startedAt);
    if (one.cpuSeconds === undefined || was?.cpuSeconds === undefined) continue;
    found.set(one.pid, Math.max(0, ((one.cpuSeconds - was.cpuSeconds) / seconds) * 100));
  }
  return found;
}

/** Returns the rows of the list: agents first, Deskhand's own process last, otherwise in the server's order. */
export function rowsOf(list: ProcessList): AgentProcesses[] {
  return [...list.items].sort((a, b) => Number(a.owner === watchdog) - Number(b.owner === watchdog));
}
