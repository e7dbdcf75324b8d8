import type Conversation from '../Conversation.svelte';
import { connection, logins, toasts } from '../state/state';
import { commandOf, typing, type CommandId } from '../ui/keys';
import type * as Part from './part';

// Which command a key asks for, and whether it may act where the focus is. What commands do is in part.ts, which is loaded behind what is
// needed at once.

/** One line of the palette. */
export interface Action {
  id: string;
  name: string;
  keys: string;
  run: () => void;
}

/** What commands need of the window's frame. */
export interface Frame {
  /** The conversation that is worked in, as it is on the screen. */
  conversation: () => Conversation | undefined;
  sidebar: () => void;
  region: (step: 1 | -1) => void;
}

/** What lies over the page. */
export type Shown =
  | { kind: 'palette'; query: string; list?: { label: string; actions: readonly Action[] } }
  /** The conversations of late; while a modifier is held, to let it go chooses. */
  | { kind: 'recent'; step: 1 | -1; held: boolean }
  | { kind: 'help'; page: string };

class Over {
  shown = $state.raw<Shown | undefined>();
  /** What commands do and what they show. Kept here, since an import that is asked for again answers later than the next key comes. */
  part = $state.raw<typeof Part | undefined>();
  /** The window's, once there is one. */
  frame: Frame | undefined;
}

export const over = new Over();

export async function loadPart(): Promise<void> {
  over.part = await import('./part');
}

/** Does what a command is for. */
export function run(id: CommandId, frame: Frame, held = false): void {
  if (over.part) over.part.act(id, frame, held);
  else void loadPart().then(() => over.part?.act(id, frame, held));
}

/** A key that nothing on the screen took. */
export function press(event: KeyboardEvent, frame: Frame): void {
  if (event.defaultPrevented || connection.link === 'signed_out') return;
  if (event.key === 'Escape' && over.part?.uncover(frame)) {
    event.preventDefault(); // else the conversation takes it for a wish to stop
    return;
  }
  const target = event.target instanceof Element ? event.target : undefined;
  const id = (target?.closest('[data-row=footer]') && commandOf(event, 'turn')) || commandOf(event);
  if (!id || !mayAct(id, target, frame)) return;
  event.preventDefault();
  run(id, frame, event.ctrlKey || event.metaKey || event.altKey);
}

function mayAct(id: CommandId, target: Element | undefined, frame: Frame): boolean {
  if (logins.shown !== undefined) return false; // keys there belong to what is logged in to
  if (id !== 'palette' && target?.closest('[data-terminal]')) return false; // and here to the program
  if (document.querySelector('dialog[open]')) return id === 'palette' && over.shown?.kind === 'palette';
  switch (id) {
    case 'undo':
      return !typing(target ?? null) && toasts.list.some((toast) => toast.undo);
    case 'find':
      return frame.conversation() !== undefined; // a browser's own finds in what else there is
    // Keys that a text field needs for itself stay there.
    case 'previousPrompt':
    case 'nextPrompt':
      return !hasText(target);
    case 'tail':
      return !hasText(target) && (target === document.body || !!target?.closest('[role=log], .composer')); // what else scrolls there has its own end
    case 'stash': // what is edited elsewhere has a save of its own
      return target === document.body || !!target?.closest('.composer');
    default:
      return true;
  }
}

function hasText(target: Element | undefined): boolean {
  return (target instanceof HTMLTextAreaElement || target instanceof HTMLInputElement) && target.value !== '';
}
