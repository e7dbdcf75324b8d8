import { isMac } from '../shell/wails';
import { keyNames, type Press } from '../ui/keys';

// Which keys the program in a terminal does not get: those that leave it, those of the clipboard, and the palette's.

export type TerminalKey = 'program' | 'leave' | 'copy' | 'paste' | 'app';

/**
 * What a key press in a terminal is for. Windows keeps Control and Escape to itself, so Control and F6 leave the terminal as well:
 * Tab belongs to the program, and nobody may be caught. Letters are those that are typed, as for the app's own keys.
 */
export function terminalKey(event: Press, selected: boolean, mac = isMac): TerminalKey {
  const { ctrlKey, metaKey, shiftKey, altKey } = event;
  if (altKey) return 'program';
  const [name] = keyNames(event);
  if (name === 'F6' && ctrlKey && !metaKey) return 'leave';
  const mod = mac ? metaKey && !ctrlKey : ctrlKey && !metaKey;
  if (!mod) return 'program';
  if (name === 'Escape') return 'leave';
  if (name === 'K' && !shiftKey) return 'app';
  // On a Mac the Command key is no part of the terminal's; elsewhere Control and C is an interrupt, so Shift is needed.
  const plain = mac ? !shiftKey : shiftKey;
  if (name === 'C' && plain) return selected || !mac ? 'copy' : 'program';
  if (name === 'V' && plain) return 'paste';
  return 'program';
}

/** How the keys that leave a terminal are written. */
export function leaveKeys(mac: boolean): string {
  if (mac) return '⌘Esc';
  return /Win/.test(navigator.platform) ? 'Ctrl+F6' : 'Ctrl+Esc';
}
