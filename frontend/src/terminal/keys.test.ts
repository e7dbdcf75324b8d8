import { expect, test } from 'vitest';
import { terminalKey, type TerminalKey } from './keys';

const press = (keys: string) => {
  const parts = keys.split('+');
  return {
    code: parts.at(-1) ?? '',
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
