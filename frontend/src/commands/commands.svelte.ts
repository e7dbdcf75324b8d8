import { connection, logins, overlay, toasts } from '../state/state';
import { commandOf, typing, type CommandId } from '../ui/keys';
import type { Frame } from './frame';
import type * as Lazy from './lazy';

// Finds the command of a key, and decides whether it may run at the focus. lazy.ts has the commands' actions and is loaded later.

class Commands {
  /** The loaded lazy.ts. The module is stored here, because another import() resolves only after the next key. */
  loaded = $state.raw<typeof Lazy | undefined>();
  /** Set once App.svelte is mounted. */
  frame: Frame | undefined;
}

export const commands = new Commands();

export async function loadActions(): Promise<void> {
  const loaded = await import('./lazy');
  commands.loaded = loaded;
  overlay.behindSlash = () => (commands.frame ? loaded.behindSlash(commands.frame) : []);
}

export function run(id: CommandId, frame: Frame, held = false): void {
  if (commands.loaded) commands.loaded.act(id, frame, held);
  else void loadActions().then(() => commands.loaded?.act(id, frame, held));
}

/** Handles a key that no component has handled. */
export function press(event: KeyboardEvent, frame: Frame): void {
  if (event.defaultPrevented || connection.link === 'signed_out') return;
  if (event.key === 'Escape' && commands.loaded?.uncover(frame)) {
    event.preventDefault(); // otherwise the session would take the Escape as a request to stop
    return;
  }
  const target = event.target instanceof Element ? event.target : undefined;
  const id = (target?.closest('[data-row=footer]') && commandOf(event, 'turn')) || commandOf(event);
  if (!id || !mayAct(id, target, frame)) return;
  event.preventDefault();
  run(id, frame, event.ctrlKey || event.metaKey || event.altKey);
}

function mayAct(id: CommandId, target: Element | undefined, frame: Frame): boolean {
  if (logins.shown !== undefined) return false; // the keys in the login dialog belong to its terminal
  if (id !== 'palette' && target?.closest('[data-terminal]')) return false; // the keys in a terminal belong to its program
  if (document.querySelector('dialog[open]')) return id === 'palette' && overlay.shown?.kind === 'palette';
  switch (id) {
    case 'undo':
      return !typing(target ?? null) && toasts.list.some((toast) => toast.undo);
    case 'find':
      return frame.conversation() !== undefined; // on other screens the browser's own search is useful
    // Keys that a text field needs itself.
    case 'previousPrompt':
    case 'nextPrompt':
      return !hasText(target);
    case 'tail':
      return !hasText(target) && (target === document.body || !!target?.closest('[role=log], .composer')); // other lists have their own end
    case 'stash': // an edited file saves with the same keys
      return target === document.body || !!target?.closest('.composer');
    default:
      return true;
  }
}

function hasText(target: Element | undefined): boolean {
  return (target instanceof HTMLTextAreaElement || target instanceof HTMLInputElement) && target.value !== '';
}
