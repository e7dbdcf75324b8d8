import { mount, unmount } from 'svelte';
import type { Session } from '../api/records';
import { unlimited } from '../api/limit';
import { client, toasts } from '../state/state';
import { t } from '../strings/t';
import type { Item } from '../ui/Menu.svelte';
import RemoveWorktree from './RemoveWorktree.svelte';
import { shown } from './shown.svelte';
import '../strings/worktree';

// The actions on a session's worktree.

/** Returns the items about the worktree for the session's menu. */
export function items(session: Session): Item[] {
  switch (session.worktree?.state) {
    case undefined:
      return [];
    case 'ready':
      return [
        { id: 'setup', name: t('setup.menu'), run: () => shown.add(session.id) },
        { id: 'worktree', name: t('worktree.remove'), run: () => askToRemove(session) },
      ];
    default:
      return [{ id: 'worktree', name: t('worktree.back'), run: () => void restore(session) }];
  }
}

/** Opens the dialog that shows the effect of a removal and carries it out. With deleting, the session is deleted too. */
export function askToRemove(session: Session, deleting = false): void {
  const dialog = mount(RemoveWorktree, {
    target: document.body,
    props: {
      session,
      deleting,
      close: () => {
        void unmount(dialog);
      },
      restore: () => void restore(session),
    },
  });
}

async function restore(session: Session): Promise<void> {
  try {
    // The call lasts as long as git takes.
    await client.call('POST /client/sessions/{id}/worktree/restore', {
      path: { id: session.id },
      signal: unlimited(),
    });
    toasts.show({ text: t('worktree.back.done'), tone: 'info' });
  } catch (thrown) {
    toasts.fail(thrown);
  }
}
