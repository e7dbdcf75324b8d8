import { mount, unmount } from 'svelte';
import type { Turn } from '../api/records';
import { server } from '../state/state';
import UndoTurn from './UndoTurn.svelte';

let shown = false;

/** Reports whether a turn has changes to undo. */
export function undoable(turn: Turn): boolean {
  const changes = turn.changes;
  return changes?.state === 'ready' && changes.files > 0 && changes.undone !== true;
}

/** Opens the dialog that undoes a turn. A second call while the dialog is open does nothing. */
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
