import { mount, unmount } from 'svelte';
import type { Turn } from '../api/records';
import { server } from '../state/state';
import UndoTurn from './UndoTurn.svelte';

let shown = false;

/** Whether there is something of a turn to take back. */
export function undoable(turn: Turn): boolean {
  const changes = turn.changes;
  return changes?.state === 'ready' && changes.files > 0 && changes.undone !== true;
}

/** Asks whether a turn shall be undone, and shows what that would do. Once: a second wish finds the first one still open. */
export function askUndo(turn: Pick<Turn, 'id' | 'session'>): void {
  if (shown || server.readOnly) return;
  shown = true;
  const dialog = mount(UndoTurn, {
    target: document.body,
    props: {
      turn: turn.id,
      session: turn.session,
      close: () => {
        shown = false;
        void unmount(dialog);
      },
    },
  });
}
