import { createSubscriber } from 'svelte/reactivity';
import { isMac, surface } from '../shell/wails';

// The keyboard map: what each command's keys are, by default and after what the person has changed in keyboard.json. Mod is Command on
// macOS and Control elsewhere.

/**
 * Keys of a command have a blank between them. Some of them a browser keeps to itself (Mod+N opens a window there), so those have a form
 * with Alt as well. What has none is in the palette, and waits for keys of the person's own.
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

/** Where keys count: anywhere, in a message that is written, or at the end of a turn. Elsewhere the same keys may do something else. */
export type Scope = 'everywhere' | 'composer' | 'turn';

export function scopeOf(id: CommandId): Scope {
  if (id === 'undoTurn') return 'turn';
  return ['send', 'newline', 'sendOther', 'recall'].includes(id) ? 'composer' : 'everywhere';
}

export function isCommand(id: string): id is CommandId {
  return Object.hasOwn(defaults, id);
}

/** What the server knows of keyboard.json. */
export interface Keyboard {
  path: string;
  version: string;
  bindings: readonly Binding[];
  problem?: string;
}

/** What a person has bound: null takes keys away from what they did. */
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

/** What the key is called: by what it types where that is a letter or a sign of ASCII, else by its place. */
export function keyNames({ key, code, shiftKey, altKey }: Press): string[] {
  const place = signs[code] ?? code.replace(/^(?:Key|Digit|Numpad(?=\d)|Arrow)/, '');
  if (altKey && isMac) return [place]; // Option makes other characters of them
  if (/^[a-z]$/i.test(key)) return [key.toUpperCase()];
  // The sign that splits has no key of its own on some keyboards: there its place counts too.
  if (key === '+') return ['Plus'];
  if (!shiftKey && /^[!-~]$/.test(key)) return code === 'Backslash' ? [key, place] : [key];
  return [place];
}

/** Names of what was pressed, the best one first; none of a modifier alone, and of what types a character with AltGr. */
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

/** Keys as everybody writes them, in the one form in which they are compared; undefined where they are none. */
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

/** What a browser does by itself, whatever a page says. */
const browsers = /^(?:Mod\+(?:Shift\+)?[NTW]|Mod\+\d|(?:Mod|Ctrl)\+(?:Shift\+)?Tab)$/;

/** Whether keys reach the page where it runs. */
export function reachable(chord: string): boolean {
  return surface() === 'window' || !browsers.test(chord);
}

// What counts.

let table: ReadonlyMap<string, readonly CommandId[]> = keysWith([]);
let told: Keyboard | undefined;
let refresh: () => void = () => undefined;
const subscribe = createSubscriber((update) => {
  refresh = update;
  return () => (refresh = () => undefined);
});

/** Which commands keys belong to when these bindings go over the defaults: the later one counts. */
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
      made.delete(chord); // what was chosen last is shown last
      made.set(chord, [...rest, command]);
    }
  }
  return made;
}

export function defaultKeys(id: CommandId): string[] {
  return defaults[id].split(' ').flatMap((keys) => chordOf(keys) ?? []);
}

/** Takes what the person has changed. */
export function takeKeyboard(keyboard: Keyboard): void {
  told = keyboard;
  table = keysWith(keyboard.bindings);
  refresh();
}

/** What was taken last; undefined until the server has told. */
export function keyboardNow(): Keyboard | undefined {
  subscribe();
  return told;
}

/** Keys that people type, or go through a page with: no command may take them, wherever these keys would count. */
export function bare(chord: string, scope: Scope): boolean {
  if (scope === 'turn' || /(?:Mod|Ctrl|Alt)\+/.test(chord)) return false;
  const key = chord.replace('Shift+', '');
  if (scope === 'composer') return /^(?:.|Space|Plus)$/.test(key);
  return !/^(?:F\d+|Home|End|PageUp|PageDown|Insert)$/.test(key);
}

/** Whether a key types a character where the focus is: with Option on a Mac, or with an AltGr that is told as Control and Alt. */
function types({ key, code, ctrlKey, metaKey, altKey, shiftKey, target }: Press): boolean {
  if (!altKey || !/^(?:.|Dead)$/u.test(key) || !typing(target ?? null)) return false;
  return isMac
    ? !ctrlKey && !metaKey
    : ctrlKey && !shiftKey && !/^[a-z\d]$/i.test(key) && key !== signs[code];
}

/** The command that a key press asks for. */
export function commandOf(event: Press, scope: Scope = 'everywhere'): CommandId | undefined {
  if (types(event)) return undefined;
  for (const chord of chordsOf(event)) {
    const found = table.get(chord)?.find((id) => scopeOf(id) === scope);
    if (found) return found;
  }
  return undefined;
}

/** All keys of a command. */
export function chordsFor(id: CommandId, of = table): string[] {
  const all = [...of].filter(([, ids]) => ids.includes(id)).map(([chord]) => chord);
  const own = defaultKeys(id);
  return [...all.filter((chord) => !own.includes(chord)), ...own.filter((chord) => all.includes(chord))];
}

const macSigns: Record<string, string> = { Mod: '⌘', Ctrl: '⌃', Alt: '⌥', Shift: '⇧' };

/** How keys are written for people. */
export function written(chord: string): string {
  const parts = chord === '' ? [] : chord.split('+');
  return parts
    .map((one) => (isMac ? (macSigns[one] ?? one) : one === 'Mod' ? 'Ctrl' : one))
    .join(isMac ? '' : '+');
}

/** How the keys of a command are written: the form that works where this runs. */
export function keysOf(id: CommandId): string {
  subscribe();
  const all = chordsFor(id);
  return written(all.find(reachable) ?? '');
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
