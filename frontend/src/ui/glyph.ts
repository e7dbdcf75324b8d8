import type { Exit, Session } from '../api/records';

/** The state of a session as its glyph shows it. */
export type Status = 'running' | 'waiting' | 'queued' | 'idle' | 'unseen' | 'failed' | 'gone' | 'asleep';

/** Returns the end of a set-up that holds the start of an agent, until the person says how it goes on; undefined when none does. */
export function heldBy({ setup }: Session): 'failed' | 'stopped' | undefined {
  return setup?.waiting && (setup.state === 'failed' || setup.state === 'stopped') ? setup.state : undefined;
}

export function statusOf(session: Session): Status {
  if (session.waiting > 0 || heldBy(session)) return 'waiting';
  switch (session.phase) {
    case 'starting':
    case 'replaying':
    case 'working':
    case 'cancelling':
      return 'running';
    case 'waiting':
      return 'waiting';
    case 'ready':
      if (session.queue > 0) return 'queued'; // held: waits until the person sends or deletes it
      return session.unread ? 'unseen' : 'idle';
    case 'closed':
      // An agent that has ended differs from an agent that never started.
      if (session.exit) return isGone(session.exit) ? 'gone' : 'failed';
      return session.unread ? 'unseen' : 'asleep';
  }
}

/** Reports whether the agent starts, or loads the session. */
export function isStarting(session: Session): boolean {
  return session.phase === 'starting' || session.phase === 'replaying';
}

function isGone(exit: Exit): boolean {
  return exit.problem === undefined || exit.problem === 'agent.exited' || exit.problem === 'session.killed';
}
