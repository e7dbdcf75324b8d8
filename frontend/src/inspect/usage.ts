import type { AgentProcesses, ProcessList } from '../api/records';

// The programs of a session.

/** Returns the processes of a session: the agent, the agent's children, then the person's own. */
export function processesOf(list: ProcessList, session: string): AgentProcesses[] {
  return list.items.filter((one) => one.session === session);
}

/** Returns the single processes of the programs in a list. */
export function membersOf({ items }: ProcessList): ProcessList['items'][number]['processes'] {
  return items.flatMap((one) => one.processes);
}
