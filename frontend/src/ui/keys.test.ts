import { afterEach, expect, test, vi } from 'vitest';
import {
  bare,
  chordOf,
  chordsOf,
  commandIds,
  commandOf,
  defaultKeys,
  keysOf,
  keysWith,
  scopeOf,
  takeKeyboard,
  typing,
  written,
  type Binding,
} from './keys';

const press = (code: string, init: KeyboardEventInit = {}) =>
  commandOf(new KeyboardEvent('keydown', { code, ...init }));
const take = (...bindings: Binding[]) => takeKeyboard({ path: '', version: '', bindings });
afterEach(() => {
  take();
  document.body.replaceChildren(); // other files of tests have the same page
});

test('keys lead to commands, with the modifiers exactly', () => {
  expect(press('KeyN', { ctrlKey: true })).toBe('new');
  expect(press('KeyN', { altKey: true })).toBe('new');
  expect(press('KeyN')).toBeUndefined();
  expect(press('KeyA', { altKey: true })).toBe('agents');
  expect(press('KeyD', { ctrlKey: true, shiftKey: true })).toBe('doctor');
  expect(press('KeyN', { ctrlKey: true, shiftKey: true })).toBe('newIn');
  expect(press('KeyK', { metaKey: true })).toBeUndefined();
  expect(press('KeyF', { ctrlKey: true, shiftKey: true })).toBe('search');
  expect(press('KeyF', { ctrlKey: true })).toBe('find');
  expect(press('KeyZ', { ctrlKey: true })).toBe('undo');
  expect(press('F6')).toBe('nextRegion');
  expect(press('F6', { shiftKey: true })).toBe('previousRegion');
  expect(press('Backspace', { ctrlKey: true, shiftKey: true })).toBe('stop');
  expect(press('Digit1', { key: '!', altKey: true, shiftKey: true })).toBe('nth1');
  expect(press('Tab', { key: 'Tab', ctrlKey: true })).toBe('recent');
  expect(press('ControlLeft', { key: 'Control', ctrlKey: true })).toBeUndefined();
});

test('a key is what it types where that is a letter, and else where it is', () => {
  expect(press('KeyV', { key: 'k', ctrlKey: true })).toBe('palette'); // Dvorak
  expect(press('KeyK', { key: 't', ctrlKey: true })).toBeUndefined();
  expect(press('KeyK', { key: 'л', ctrlKey: true })).toBe('palette'); // Russian
  expect(press('Digit1', { key: '&', altKey: true })).toBeUndefined(); // French: without Shift the key types a sign
  expect(press('Digit1', { key: '1', altKey: true })).toBe('changes');
  expect(press('Backslash', { key: '#', ctrlKey: true })).toBe('split'); // German
  expect(press('Period', { key: '.', ctrlKey: true })).toBe('band');
  expect(
    chordsOf(new KeyboardEvent('keydown', { key: '+', code: 'Equal', ctrlKey: true, shiftKey: true })),
  ).toEqual(['Mod+Shift+Plus']);
});

test('what AltGr types is no command', () => {
  const event = new KeyboardEvent('keydown', {
    code: 'KeyQ',
    key: '@',
    ctrlKey: true,
    altKey: true,
    modifierAltGraph: true,
  });
  expect(chordsOf(event)).toEqual([]);
});

test('where AltGr is told as Control and Alt, the sign that it types in a field is text', () => {
  const at = (html: string, init: KeyboardEventInit) => {
    document.body.innerHTML = html;
    let found: string | undefined;
    const look = (event: KeyboardEvent) => (found = commandOf(event));
    document.body.addEventListener('keydown', look, { once: true });
    document.body.firstElementChild?.dispatchEvent(
      new KeyboardEvent('keydown', { bubbles: true, ctrlKey: true, altKey: true, ...init }),
    );
    return found;
  };
  take({ keys: 'Mod+Alt+Q', command: 'help' }, { keys: 'Mod+Alt+@', command: 'inbox' });
  expect(at('<textarea></textarea>', { code: 'KeyQ', key: '@' })).toBeUndefined(); // German
  expect(at('<textarea></textarea>', { code: 'KeyA', key: 'ą' })).toBeUndefined(); // Polish
  expect(at('<textarea></textarea>', { code: 'KeyQ', key: 'q' })).toBe('help');
  expect(at('<button></button>', { code: 'KeyQ', key: 'q' })).toBe('help');
  expect(at('<textarea></textarea>', { code: 'ArrowLeft', key: 'ArrowLeft' })).toBe('paneLeft');
});

test('what Option types in a field of a Mac is text, and elsewhere it is a command', async () => {
  vi.resetModules();
  vi.spyOn(navigator, 'platform', 'get').mockReturnValue('MacIntel');
  const mac = await import('./keys');
  vi.resetModules(); // or the files of tests that come later would have the keys of a Mac
  mac.takeKeyboard({ path: '', version: '', bindings: [] });
  vi.restoreAllMocks();
  const at = (html: string, init: KeyboardEventInit) => {
    document.body.innerHTML = html;
    const event = new KeyboardEvent('keydown', { bubbles: true, altKey: true, ...init });
    document.body.firstElementChild?.dispatchEvent(event);
    return mac.commandOf(event);
  };
  for (const field of ['<textarea></textarea>', '<input>']) {
    expect(at(field, { code: 'Digit1', key: '¡' }), field).toBeUndefined();
    expect(at(field, { code: 'KeyN', key: 'Dead' }), field).toBeUndefined();
    expect(at(field, { code: 'Digit1', key: '⁄', shiftKey: true }), field).toBeUndefined();
    expect(at(field, { code: 'ArrowUp', key: 'ArrowUp' }), field).toBe('previousPrompt');
    expect(at(field, { code: 'F1', key: 'F1' }), field).toBe('help');
    expect(at(field, { code: 'KeyJ', key: 'j', altKey: false, metaKey: true }), field).toBe('panel');
    expect(at(field, { code: 'ArrowLeft', key: 'ArrowLeft', metaKey: true }), field).toBe('paneLeft');
  }
  expect(at('<button></button>', { code: 'Digit1', key: '¡' })).toBe('changes');
  expect(at('<button></button>', { code: 'KeyN', key: 'Dead' })).toBe('new');
});

test('keys are compared in one form, however they are written', () => {
  expect(chordOf('shift + mod+x')).toBe('Mod+Shift+X');
  expect(chordOf('Ctrl+Tab')).toBe('Mod+Tab'); // where Mod is Control
  expect(chordOf('alt+up')).toBe('Alt+Up');
  expect(chordOf('Mod+\\')).toBe('Mod+\\');
  for (const none of ['', 'Mod+', 'Hyper+X', 'Mod+X Y', '++', 'X+Mod']) expect(chordOf(none)).toBeUndefined();
  for (const id of commandIds) for (const chord of defaultKeys(id)) expect(chordOf(chord)).toBe(chord);
});

test('no keys belong to two commands in one place, and none are what people type', () => {
  for (const [chord, ids] of keysWith([])) {
    expect(new Set(ids.map(scopeOf)).size, chord).toBe(ids.length);
    for (const id of ids) expect(bare(chord, scopeOf(id)), `${chord} ${id}`).toBe(false);
  }
});

test('the same keys do something else in a message and at the end of a turn', () => {
  const undo = { code: 'KeyZ', key: 'z', ctrlKey: true };
  expect(commandOf(new KeyboardEvent('keydown', undo), 'turn')).toBe('undoTurn');
  expect(commandOf(new KeyboardEvent('keydown', undo), 'composer')).toBeUndefined();
  const enter = (init: KeyboardEventInit = {}) =>
    commandOf(new KeyboardEvent('keydown', { code: 'Enter', key: 'Enter', ...init }), 'composer');
  expect([enter(), enter({ shiftKey: true }), enter({ ctrlKey: true }), enter({ altKey: true })]).toEqual([
    'send',
    'newline',
    'sendOther',
    undefined,
  ]);
  expect(press('Enter', { key: 'Enter' })).toBeUndefined();
});

test('what a person binds goes over the defaults, and null takes keys away', () => {
  take(
    { keys: 'Mod+Shift+X', command: 'inbox' },
    { keys: 'Mod+I', command: null },
    { keys: 'mod+k', command: 'search' },
    { keys: 'Mod+Z', command: 'settings' },
    { keys: 'X', command: 'help' },
    { keys: 'Nonsense+X', command: 'help' },
    { keys: 'F9', command: 'unheard.of' },
  );
  expect(press('KeyX', { ctrlKey: true, shiftKey: true })).toBe('inbox');
  expect(press('KeyI', { ctrlKey: true })).toBeUndefined();
  expect(press('KeyI', { altKey: true })).toBe('inbox');
  expect(press('KeyK', { ctrlKey: true })).toBe('search');
  expect(press('KeyZ', { ctrlKey: true })).toBe('settings');
  expect(commandOf(new KeyboardEvent('keydown', { code: 'KeyZ', ctrlKey: true }), 'turn')).toBe('undoTurn');
  expect(press('KeyX')).toBeUndefined();
  expect(press('F9')).toBeUndefined();
  expect(keysOf('inbox')).toBe('Ctrl+Shift+X'); // the person's keys come before the default
  expect(keysOf('palette')).toBe('');
});

test('in a browser the form that a page gets is shown', () => {
  expect(keysOf('new')).toBe('Alt+N');
  expect(keysOf('nth3')).toBe('Alt+Shift+3');
  expect(keysOf('recent')).toBe('Alt+Q');
  expect(keysOf('palette')).toBe('Ctrl+K');
  expect(keysOf('inbox')).toBe('Ctrl+I');
  expect(keysOf('keyboard')).toBe('');
  expect(written('Mod+Alt+Left')).toBe('Ctrl+Alt+Left');
});

test('letters are text in text fields, not on buttons', () => {
  const make = (html: string) => {
    document.body.innerHTML = html;
    return document.body.firstElementChild;
  };
  expect(typing(make('<textarea></textarea>'))).toBe(true);
  expect(typing(make('<input>'))).toBe(true);
  expect(typing(make('<input type="radio">'))).toBe(false);
  expect(typing(make('<button></button>'))).toBe(false);
  expect(typing(null)).toBe(false);
});
