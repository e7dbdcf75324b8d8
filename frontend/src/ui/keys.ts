import { createSubscriber } from 'svelte/reactivity';
import { isMac, surface } from '../shell/wails';

// The keyboard map: the keys of each command, by default and with the person's changes in keyboard.json. Mod is Command on macOS and
// Control elsewhere.

/**
 * Several keys of a command are separated by spaces. Browsers reserve some keys (Mod+N opens a window), so those commands also have keys
 * with Alt. A command without keys is in the palette, and a person can give it keys.
 */
const defaults = {
  palette: 'Mod+K',
  quickOpen: 'Mod+P',
  help: 'Alt+F1',
  new: 'Mod+N Alt+N',
  newIn: 'Mod+Shift+N Alt+Shift+N',
  search: 'Mod+Shift+F',
  find: 'Mod+F',
  inbox: 'Mod+I Alt+I',
  recent: 'Ctrl+Tab Alt+Q',
  recentBack: 'Ctrl+Shift+Tab Alt+Shift+Q',
  nth1: 'Mod+1 Alt+Shift+1',
  nth2: 'Mod+2 Alt+Shift+2',
  nth3: 'Mod+3 Alt+Shift+3',
  nth4: 'Mod+4 Alt+Shift+4',
  nth5: 'Mod+5 Alt+Shift+5',
  nth6: 'Mod+6 Alt+Shift+6',
  nth7: 'Mod+7 Alt+Shift+7',
  nth8: 'Mod+8 Alt+Shift+8',
  nth9: 'Mod+9 Alt+Shift+9',
  sidebar: 'Mod+B',
  panel: 'Mod+J',
  changes: 'Alt+1',
  files: 'Alt+2',
  terminal: 'Alt+3',
  plan: 'Alt+4',
  inspector: 'Alt+5',
  newTerminal: '',
  split: 'Mod+\\',
  paneLeft: 'Mod+Alt+Left',
  paneRight: 'Mod+Alt+Right',
  paneUp: 'Mod+Alt+Up',
  paneDown: 'Mod+Alt+Down',
  closePane: 'Mod+W Alt+W',
  nextRegion: 'F6',
  previousRegion: 'Shift+F6',
  band: 'Mod+.',
  stop: 'Mod+Shift+Backspace',
  mode: 'Mod+M',
  model: 'Mod+Shift+M',
  effort: 'Mod+Shift+E',
  stash: 'Mod+S',
  attach: '',
  previousPrompt: 'Alt+Up',
  nextPrompt: 'Alt+Down',
  tail: 'End',
  undo: 'Mod+Z',
  undoTurn: 'Mod+Z',
  doctor: 'Mod+Shift+D',
  restart: '',
  agents: 'Alt+A',
  mcp: 'Alt+M',
  skills: 'Alt+S',
  import: '',
  settings: 'Mod+,',
  keyboard: '',
  pin: '',
  unread: '',
  archive: '',
  delete: '',
  fork: '',
  relink: '',
  attached: '',
  copyId: '',
  exportMd: '',
  exportJson: '',
  exportRecording: '',
  send: 'Enter',
  newline: 'Shift+Enter',
  sendOther: 'Mod+Enter',
  recall: 'Up',
} as const;

export type CommandId = keyof typeof defaults;
export const commandIds = Object.keys(defaults) as CommandId[];

/** Where the keys of a command work: anywhere, in the composer, or at a turn's end. Elsewhere the same keys may do something else. */
type Scope = 'everywhere' | 'composer' | 'turn';

export function scopeOf(id: CommandId): Scope {
  if (id === 'undoTurn') return 'turn';
  return ['send', 'newline', 'sendOther', 'recall'].includes(id) ? 'composer' : 'everywhere';
}

export function isCommand(id: string): id is CommandId {
  return Object.hasOwn(defaults, id);
}

/** The server's state of keyboard.json. */
export interface Keyboard {
  path: string;
  version: string;
  bindings: readonly Binding[];
  problem?: string;
}

/** A person's binding. null removes the keys from their default command. */
export interface Binding {
  keys: string;
  command: string | null;
  line?: number;
}

// Names of keys.

const signs: Record<string, string> = {
  Comma: ',',
  Period: '.',
  Slash: '/',
  Backslash: '\\',
  Semicolon: ';',
  Quote: "'",
  BracketLeft: '[',
  BracketRight: ']',
  Minus: '-',
  Equal: '=',
  Backquote: '`',
};
const modifiers = isMac ? ['Mod', 'Ctrl', 'Alt', 'Shift'] : ['Mod', 'Alt', 'Shift'];

export type Press = Pick<KeyboardEvent, 'key' | 'code' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'> &
  Partial<Pick<KeyboardEvent, 'getModifierState' | 'target'>>;

/** Returns the names of a key: the typed character where that is an ASCII letter or sign, otherwise the name of the key's position. */
export function keyNames({ key, code, shiftKey, altKey }: Press): string[] {
  const place = signs[code] ?? code.replace(/^(?:Key|Digit|Numpad(?=\d)|Arrow)/, '');
  if (altKey && isMac) return [place]; // Option types other characters with these keys
  if (/^[a-z]$/i.test(key)) return [key.toUpperCase()];
  // Some keyboards have no key for "\", so the position of that key counts too.
  if (key === '+') return ['Plus'];
  if (!shiftKey && /^[!-~]$/.test(key)) return code === 'Backslash' ? [key, place] : [key];
  return [place];
}

/** Returns the chords of a key press, the best first. The list is empty for a modifier alone, and for AltGr typing a character. */
export function chordsOf(event: Press): string[] {
  if (/^(?:Control|Shift|Alt|AltGraph|Meta|OS)$/.test(event.key)) return [];
  if (!isMac && (event.metaKey || event.getModifierState?.('AltGraph'))) return [];
  const held: string[] = [];
  if (isMac ? event.metaKey : event.ctrlKey) held.push('Mod');
  if (isMac && event.ctrlKey) held.push('Ctrl');
  if (event.altKey) held.push('Alt');
  if (event.shiftKey) held.push('Shift');
  return keyNames(event).map((name) => [...held, name].join('+'));
}

/** Returns keys in their canonical form; undefined for invalid keys. */
export function chordOf(keys: string): string | undefined {
  const parts = keys.trim().split(/\s*\+\s*/);
  const last = parts.pop() ?? '';
  if (!/^(?:[^\s+]|[A-Za-z]\w+)$/.test(last)) return undefined;
  const held = new Set<string>();
  for (const part of parts) {
    const name = part.charAt(0).toUpperCase() + part.slice(1).toLowerCase();
    const modifier = name === 'Ctrl' && !isMac ? 'Mod' : name;
    if (!modifiers.includes(modifier)) return undefined;
    held.add(modifier);
  }
  const key = last.charAt(0).toUpperCase() + last.slice(1);
  return [...modifiers.filter((one) => held.has(one)), key].join('+');
}

/** Keys that browsers handle regardless of the page. */
const browsers = /^(?:Mod\+(?:Shift\+)?[NTW]|Mod\+\d|(?:Mod|Ctrl)\+(?:Shift\+)?Tab)$/;

/** Reports whether keys reach the page here. */
export function reachable(chord: string): boolean {
  return surface() === 'window' || !browsers.test(chord);
}

// The current table.

let table: ReadonlyMap<string, readonly CommandId[]> = keysWith([]);
let told: Keyboard | undefined;
let refresh: () => void = () => undefined;
const subscribe = createSubscriber((update) => {
  refresh = update;
  return () => (refresh = () => undefined);
});

/** Returns the table of the defaults with the bindings applied; a later binding wins. */
export function keysWith(bindings: readonly Binding[]): Map<string, CommandId[]> {
  const made = new Map<string, CommandId[]>();
  for (const id of commandIds) {
    for (const keys of defaultKeys(id)) made.set(keys, [...(made.get(keys) ?? []), id]);
  }
  for (const { keys, command } of bindings) {
    const chord = chordOf(keys);
    if (!chord) continue;
    if (command === null) made.delete(chord);
    else if (isCommand(command) && !bare(chord, scopeOf(command))) {
      const rest = (made.get(chord) ?? []).filter((one) => scopeOf(one) !== scopeOf(command));
      made.delete(chord); // a command set later is shown later
      made.set(chord, [...rest, command]);
    }
  }
  return made;
}

export function defaultKeys(id: CommandId): string[] {
  return defaults[id].split(' ').flatMap((keys) => chordOf(keys) ?? []);
}

/** Applies the person's changes. */
export function takeKeyboard(keyboard: Keyboard): void {
  told = keyboard;
  table = keysWith(keyboard.bindings);
  refresh();
}

/** Returns the state that was applied last; undefined before the server's first answer. */
export function keyboardNow(): Keyboard | undefined {
  subscribe();
  return told;
}

/** Reports whether keys are needed for typing or for moving through a page, so that no command may have them in that scope. */
export function bare(chord: string, scope: Scope): boolean {
  if (scope === 'turn' || /(?:Mod|Ctrl|Alt)\+/.test(chord)) return false;
  const key = chord.replace('Shift+', '');
  if (scope === 'composer') return /^(?:.|Space|Plus)$/.test(key);
  return !/^(?:F\d+|Home|End|PageUp|PageDown|Insert)$/.test(key);
}

/** Reports whether a key types a character at the focus: with Option on a Mac, or with AltGr, which is reported as Control and Alt. */
function types({ key, code, ctrlKey, metaKey, altKey, shiftKey, target }: Press): boolean {
  if (!altKey || !/^(?:.|Dead)$/u.test(key) || !typing(target ?? null)) return false;
  return isMac
    ? !ctrlKey && !metaKey
    : ctrlKey && !shiftKey && !/^[a-z\d]$/i.test(key) && key !== signs[code];
}

export function commandOf(event: Press, scope: Scope = 'everywhere'): CommandId | undefined {
  if (types(event)) return undefined;
  for (const chord of chordsOf(event)) {
    const found = table.get(chord)?.find((id) => scopeOf(id) === scope);
    if (found) return found;
  }
  return undefined;
}

/** Returns all keys of a command. */
function chordsFor(id: CommandId, of = table): string[] {
  const all = [...of].filter(([, ids]) => ids.includes(id)).map(([chord]) => chord);
  const own = defaultKeys(id);
  return [...all.filter((chord) => !own.includes(chord)), ...own.filter((chord) => all.includes(chord))];
}

const macSigns: Record<string, string> = { Mod: '⌘', Ctrl: '⌃', Alt: '⌥', Shift: '⇧' };

/** Returns keys as displayed. */
export function written(chord: string): string {
  const parts = chord === '' ? [] : chord.split('+');
  return parts
    .map((one) => (isMac ? (macSigns[one] ?? one) : one === 'Mod' ? 'Ctrl' : one))
    .join(isMac ? '' : '+');
}

/** Returns the displayed keys of a command: the first that work here. */
export function keysOf(id: CommandId): string {
  subscribe();
  const all = chordsFor(id);
  return written(all.find(reachable) ?? '');
}

/** Reports whether letters typed at the target are text. */
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
