import { expect, test } from 'vitest';
import { commandIds, keysWith, type Binding } from '../ui/keys';
import {
  bindingsFor,
  commandsOf,
  faults,
  holder,
  isDefault,
  reset,
  withKeys,
  withoutKeys,
  type Table,
} from './bindings';

const usual = (): Table => keysWith([]);
const same = (table: Table) => [...commandsOf(table)].map(([id, chords]) => [id, chords.toSorted()]);

test('nothing is written down for what is as it was', () => {
  expect(bindingsFor(usual())).toEqual([]);
  for (const id of commandIds) expect(isDefault(usual(), id), id).toBe(true);
});

test('bindings make the table that they were made of', () => {
  let table = usual();
  const tables = [
    (table = withKeys(table, 'F9', 'inbox')),
    (table = withoutKeys(table, 'Mod+I', 'inbox')),
    (table = withKeys(table, 'Mod+K', 'search')), // taken from the palette
    (table = withKeys(table, 'Mod+Shift+U', 'undo')),
    (table = withoutKeys(table, 'Mod+Z', 'undo')), // undoing a turn keeps these keys too
    (table = withKeys(table, 'Mod+Enter', 'settings')), // the keys still send a message
    (table = withoutKeys(table, 'Enter', 'send')),
    (table = withKeys(table, 'F9', 'help')),
  ];
  for (const one of tables) expect(same(keysWith(bindingsFor(one)))).toEqual(same(one));
  for (const id of commandIds) {
    table = reset(table, id);
    expect(isDefault(table, id), id).toBe(true);
  }
  expect(bindingsFor(table)).toEqual([]);
});

test('a command that takes keys over needs one line, and keys that do nothing a null', () => {
  expect(bindingsFor(withKeys(usual(), 'Mod+K', 'search'))).toEqual([{ keys: 'Mod+K', command: 'search' }]);
  expect(bindingsFor(withoutKeys(usual(), 'Mod+K', 'palette'))).toEqual([{ keys: 'Mod+K', command: null }]);
  expect(bindingsFor(withoutKeys(usual(), 'Mod+Z', 'undo'))).toEqual([
    { keys: 'Mod+Z', command: null },
    { keys: 'Mod+Z', command: 'undoTurn' },
  ]);
});

test('a conflict is one of the same place', () => {
  expect(holder(usual(), 'Mod+K', 'search')).toBe('palette');
  expect(holder(usual(), 'Mod+K', 'palette')).toBeUndefined();
  expect(holder(usual(), 'Mod+Enter', 'settings')).toBeUndefined();
  expect(holder(usual(), 'Mod+Z', 'settings')).toBe('undo');
});

test('what stands in the file and does nothing is told, and stays there', () => {
  const bindings: Binding[] = [
    { keys: 'Wat+X', command: 'help', line: 2 },
    { keys: 'F9', command: 'from.a.later.version', line: 3 },
    { keys: 'X', command: 'help', line: 4 },
    { keys: 'mod+k', command: 'search', line: 5 },
    { keys: 'Mod+K', command: 'inbox', line: 6 },
    { keys: 'Mod+I', command: null, line: 7 },
  ];
  expect(faults(bindings).map(({ kind, binding }) => [kind, binding.line])).toEqual([
    ['keys', 2],
    ['command', 3],
    ['bare', 4],
    ['again', 5],
  ]);
  expect(bindingsFor(usual(), bindings)).toEqual([
    { keys: 'Wat+X', command: 'help' },
    { keys: 'F9', command: 'from.a.later.version' },
    { keys: 'X', command: 'help' },
  ]);
});
