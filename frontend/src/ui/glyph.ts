import type { Exit, Session } from '../api/records';

/** What a session is doing, as its glyph tells it. */
export type Status = 'running' | 'waiting' | 'queued' | 'idle' | 'unseen' | 'failed' | 'gone' | 'asleep';

export function statusOf(session: Session): Status {
  if (session.waiting > 0) return 'waiting';
  switch (session.phase) {
    case 'starting':
    case 'replaying':
    case 'working':
    case 'cancelling':
      return 'running';
    case 'waiting':
      return 'waiting';
    case 'ready':
      if (session.queue > 0) return 'queued'; // held: the person sends or deletes it
      return session.unread ? 'unseen' : 'idle';
    case 'closed':
      // An agent that ran and went is told apart from one that never came.
      if (session.exit) return isGone(session.exit) ? 'gone' : 'failed';
      return session.unread ? 'unseen' : 'asleep';
  }
}

/** Whether its agent starts, or takes the conversation up again. */
export function isStarting(session: Session): boolean {
  return session.phase === 'starting' || session.phase === 'replaying';
}

function isGone(exit: Exit): boolean {
  return exit.problem === undefined || exit.problem === 'agent.exited' || exit.problem === 'session.killed';
}
