import { isMac } from '../shell/wails';

// Which keys the program in a terminal does not get: those that leave it, those of the clipboard, and the palette's.

export type TerminalKey = 'program' | 'leave' | 'copy' | 'paste' | 'app';

interface Press {
  code: string;
  ctrlKey: boolean;
  metaKey: boolean;
  shiftKey: boolean;
  altKey: boolean;
}

/**
 * What a key press in a terminal is for. Windows keeps Control and Escape to itself, so Control and F6 leave the terminal as well:
 * Tab belongs to the program, and nobody may be caught.
 */
export function terminalKey(event: Press, selected: boolean, mac = isMac): TerminalKey {
  const { code, ctrlKey, metaKey, shiftKey, altKey } = event;
  if (altKey) return 'program';
  if (code === 'F6' && ctrlKey && !metaKey) return 'leave';
  const mod = mac ? metaKey && !ctrlKey : ctrlKey && !metaKey;
  if (!mod) return 'program';
  if (code === 'Escape') return 'leave';
  if (code === 'KeyK' && !shiftKey) return 'app';
  // On a Mac the Command key is no part of the terminal's; elsewhere Control and C is an interrupt, so Shift is needed.
  const plain = mac ? !shiftKey : shiftKey;
  if (code === 'KeyC' && plain) return selected || !mac ? 'copy' : 'program';
  if (code === 'KeyV' && plain) return 'paste';
  return 'program';
}

/** How the keys that leave a terminal are written. */
export function leaveKeys(mac: boolean): string {
  if (mac) return '⌘Esc';
  return /Win/.test(navigator.platform) ? 'Ctrl+F6' : 'Ctrl+Esc';
}
