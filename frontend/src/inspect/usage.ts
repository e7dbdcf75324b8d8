import type { AgentProcesses, ProcessList } from '../api/records';
import type { Sample } from '../state/usage';

// The memory and processor time of a session's programs.

/** Returns the processes of a session: the agent, the agent's children, then the person's own. */
export function processesOf(list: ProcessList, session: string): AgentProcesses[] {
  return list.items.filter((one) => one.session === session);
}

/** Returns each process's share of one core between two samples, in percent, by pid. */
export function eachRate(before: Sample | undefined, now: Sample): ReadonlyMap<number, number> {
  const found = new Map<number, number>();
  const seconds = before ? (now.at - before.at) / 1000 : 0;
  if (!before || seconds <= 0) return found;
  const was = new Map(before.list.items.flatMap((one) => one.processes.map((each) => [each.pid, each])));
  for (const each of now.list.items.flatMap((one) => one.processes)) {
    const old = was.get(each.pid);
    if (old?.startedAt !== each.startedAt) continue; // another process has this pid by now
    found.set(each.pid, Math.max(0, ((each.cpuSeconds - old.cpuSeconds) / seconds) * 100));
  }
  return found;
}
