import type { Session } from '../api/records';
import { lifecycle } from '../state/state';

/** Deletes a conversation. The person is asked first about the worktree of a conversation that has one. */
export async function askToDelete(session: Session): Promise<void> {
  if (session.worktree?.state !== 'ready') return lifecycle.delete(session);
  (await import('./actions')).askToRemove(session, true);
}
