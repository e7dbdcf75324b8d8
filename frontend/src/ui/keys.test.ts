import { expect, test } from 'vitest';
import { commandOf, composing, keysOf, typing } from './keys';

const press = (code: string, init: KeyboardEventInit = {}) =>
  commandOf(new KeyboardEvent('keydown', { code, ...init }));

test('keys lead to commands, with the modifiers exactly', () => {
  expect(press('KeyN', { ctrlKey: true })).toBe('new');
  expect(press('KeyN', { altKey: true })).toBe('new');
  expect(press('KeyN')).toBeUndefined();
  expect(press('KeyA', { altKey: true })).toBe('agents');
  expect(press('KeyD', { ctrlKey: true, shiftKey: true })).toBe('agents');
  expect(press('KeyN', { ctrlKey: true, shiftKey: true })).toBeUndefined();
  expect(press('KeyK', { metaKey: true })).toBeUndefined();
  expect(press('KeyF', { ctrlKey: true, shiftKey: true })).toBe('search');
  expect(press('KeyF', { ctrlKey: true })).toBe('find');
  expect(press('KeyZ', { ctrlKey: true })).toBe('undo');
  expect(press('F6')).toBe('nextRegion');
  expect(press('F6', { shiftKey: true })).toBe('previousRegion');
  expect(press('Backspace', { ctrlKey: true, shiftKey: true })).toBe('stop');
});

test('in a browser the form that a page gets is shown', () => {
  expect(keysOf('new')).toBe('Alt+N');
  expect(keysOf('palette')).toBe('Ctrl+K');
  expect(keysOf('tail')).toBe('');
});

test('an input method that composes keeps its Enter', () => {
  expect(composing(new KeyboardEvent('keydown', { key: 'Enter', isComposing: true }))).toBe(true);
  expect(composing(new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229 }))).toBe(true);
  expect(composing(new KeyboardEvent('keydown', { key: 'Enter' }))).toBe(false);
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
