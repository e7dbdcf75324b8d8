import { expect, test } from 'vitest';
import { terminalKey, type TerminalKey } from './keys';

const press = (keys: string, key = '') => {
  const parts = keys.split('+');
  return {
    code: parts.at(-1) ?? '',
    key,
    ctrlKey: parts.includes('Ctrl'),
    metaKey: parts.includes('Cmd'),
    shiftKey: parts.includes('Shift'),
    altKey: parts.includes('Alt'),
  };
};

test.each<[string, boolean, TerminalKey]>([
  ['KeyA', false, 'program'],
  ['Tab', false, 'program'],
  ['Shift+Tab', false, 'program'],
  ['Escape', false, 'program'],
  ['F6', false, 'program'],
  ['Ctrl+KeyC', false, 'program'],
  ['Ctrl+KeyB', false, 'program'],
  ['Ctrl+Alt+KeyK', false, 'program'],
  ['Ctrl+KeyK', false, 'app'],
  ['Ctrl+Escape', false, 'leave'],
  ['Ctrl+F6', false, 'leave'],
  ['Ctrl+Shift+KeyC', false, 'copy'],
  ['Ctrl+Shift+KeyV', false, 'paste'],
  ['Ctrl+KeyK', true, 'program'],
  ['Ctrl+KeyC', true, 'program'],
  ['Cmd+KeyK', true, 'app'],
  ['Cmd+Escape', true, 'leave'],
  ['Ctrl+F6', true, 'leave'],
  ['Cmd+KeyV', true, 'paste'],
])('%s (mac: %s) is for %s', (keys, mac, what) => {
  expect(terminalKey(press(keys), false, mac)).toBe(what);
});

test('on a Mac, Command and C copies where something is selected', () => {
  expect(terminalKey(press('Cmd+KeyC'), true, true)).toBe('copy');
  expect(terminalKey(press('Cmd+KeyC'), false, true)).toBe('program');
});

test.each<[string, string, TerminalKey]>([
  // Dvorak
  ['Ctrl+KeyV', 'k', 'app'],
  ['Ctrl+KeyK', 't', 'program'],
  ['Ctrl+Shift+KeyI', 'C', 'copy'],
  ['Ctrl+Shift+KeyC', 'J', 'program'],
  ['Ctrl+Shift+Period', 'V', 'paste'],
  ['Ctrl+Shift+KeyV', 'K', 'program'],
  // Russian
  ['Ctrl+KeyK', 'л', 'app'],
  ['Ctrl+Shift+KeyC', 'С', 'copy'],
  ['Ctrl+Shift+KeyV', 'М', 'paste'],
])('%s that types %s is for %s', (keys, key, what) => {
  expect(terminalKey(press(keys, key), false, false)).toBe(what);
});
