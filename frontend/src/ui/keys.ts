import { isMac, surface } from '../shell/wails';

// The keyboard map. Mod is Command on macOS and Control elsewhere. A page in a browser does not get some of them (Mod+N opens a
// window there), so those have a form with Alt as well.

export type CommandId =
  | 'palette'
  | 'new'
  | 'inbox'
  | 'search'
  | 'find'
  | 'agents'
  | 'mcp'
  | 'skills'
  | 'settings'
  | 'sidebar'
  | 'band'
  | 'stop'
  | 'undo'
  | 'tail'
  | 'previousPrompt'
  | 'nextPrompt'
  | 'nextRegion'
  | 'previousRegion';

interface Binding {
  id: CommandId;
  /** KeyboardEvent.code, which Alt on macOS does not change. */
  code: string;
  key: string;
  mod?: boolean;
  shift?: boolean;
  alt?: boolean;
}

const bindings: readonly Binding[] = [
  { id: 'palette', code: 'KeyK', key: 'K', mod: true },
  { id: 'new', code: 'KeyN', key: 'N', mod: true },
  { id: 'new', code: 'KeyN', key: 'N', alt: true },
  { id: 'search', code: 'KeyF', key: 'F', mod: true, shift: true },
  { id: 'find', code: 'KeyF', key: 'F', mod: true },
  { id: 'inbox', code: 'KeyI', key: 'I', mod: true },
  { id: 'inbox', code: 'KeyI', key: 'I', alt: true },
  { id: 'agents', code: 'KeyD', key: 'D', mod: true, shift: true },
  { id: 'agents', code: 'KeyA', key: 'A', alt: true },
  { id: 'settings', code: 'Comma', key: ',', mod: true },
  { id: 'mcp', code: 'KeyM', key: 'M', alt: true },
  { id: 'skills', code: 'KeyS', key: 'S', alt: true },
  { id: 'sidebar', code: 'KeyB', key: 'B', mod: true },
  { id: 'band', code: 'Period', key: '.', mod: true },
  { id: 'stop', code: 'Backspace', key: 'Backspace', mod: true, shift: true },
  { id: 'undo', code: 'KeyZ', key: 'Z', mod: true },
  { id: 'previousPrompt', code: 'ArrowUp', key: 'Up', alt: true },
  { id: 'nextPrompt', code: 'ArrowDown', key: 'Down', alt: true },
  { id: 'nextRegion', code: 'F6', key: 'F6' },
  { id: 'previousRegion', code: 'F6', key: 'F6', shift: true },
];

/** The command that a key press asks for. */
export function commandOf(event: KeyboardEvent): CommandId | undefined {
  const mod = isMac ? event.metaKey : event.ctrlKey;
  const other = isMac ? event.ctrlKey : event.metaKey;
  if (other) return undefined;
  return bindings.find(
    (binding) =>
      binding.code === event.code &&
      (binding.mod ?? false) === mod &&
      (binding.shift ?? false) === event.shiftKey &&
      (binding.alt ?? false) === event.altKey,
  )?.id;
}

/** How the keys of a command are written: the form that works where this runs. */
export function keysOf(id: CommandId): string {
  const all = bindings.filter((binding) => binding.id === id);
  const binding = (surface() === 'browser' && all.find((one) => one.alt)) || all[0];
  if (!binding) return '';
  const parts: string[] = [];
  if (binding.mod) parts.push(isMac ? '⌘' : 'Ctrl');
  if (binding.alt) parts.push(isMac ? '⌥' : 'Alt');
  if (binding.shift) parts.push(isMac ? '⇧' : 'Shift');
  parts.push(binding.key);
  return parts.join(isMac ? '' : '+');
}

/** Whether the focus is where letters are text. */
export function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (
    target.isContentEditable ||
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement
  )
    return true;
  return (
    target instanceof HTMLInputElement && !['checkbox', 'radio', 'button', 'submit'].includes(target.type)
  );
}

/** Whether the key belongs to an input method that is composing a character. Safari ends the composition before the key. */
export function composing(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === 229;
}
