import { isMac } from '../shell/wails';
import { keyNames, type Press } from '../ui/keys';

// The keys that do not go to the program in a terminal: those that leave the terminal, those of the clipboard, and the palette's.

export type TerminalKey = 'program' | 'leave' | 'copy' | 'paste' | 'app';

/**
 * Returns the receiver of a key press in a terminal. Tab belongs to the program, so other keys must leave the terminal: Control and Escape,
 * and (because Windows reserves these) Control and F6. As for the app's own keys, a letter is the typed letter.
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
  // On a Mac the Command key never goes to the terminal. Elsewhere Control and C interrupts the program, so copying needs Shift.
  const plain = mac ? !shiftKey : shiftKey;
  if (name === 'C' && plain) return selected || !mac ? 'copy' : 'program';
  if (name === 'V' && plain) return 'paste';
  return 'program';
}

/** Returns the displayed name of the keys that leave a terminal. */
export function leaveKeys(mac: boolean): string {
  if (mac) return '⌘Esc';
  return /Win/.test(navigator.platform) ? 'Ctrl+F6' : 'Ctrl+Esc';
}
