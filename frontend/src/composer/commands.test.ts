import { describe, expect, test } from 'vitest';
import { accept, complete } from './commands';

const commands = [
  { name: 'plan', description: 'Makes a plan' },
  { name: 'explain', hint: '<file>' },
  { name: 'replan' },
];
const names = (text: string, caret = text.length) =>
  complete(text, caret, commands)?.matches.map((one) => one.name);

describe('completion', () => {
  test('begins with a slash at the start', () => {
    expect(names('/')).toEqual(['plan', 'explain', 'replan']);
    expect(names('do /')).toBeUndefined();
    expect(names('')).toBeUndefined();
  });

  test('puts what begins so before what holds it', () => {
    expect(names('/PLAN')).toEqual(['plan', 'replan']);
    expect(names('/pl')).toEqual(['plan', 'explain', 'replan']);
  });

  test('is about the first word only, as far as the caret', () => {
    expect(names('/plan the work')).toBeUndefined();
    expect(names('/pl the work', 2)).toEqual(['plan', 'explain', 'replan']);
    expect(names('/plan', 0)).toBeUndefined();
  });

  test('ends when nothing fits or nothing is left to complete', () => {
    expect(names('/xyz')).toBeUndefined();
    expect(names('/replan')).toBeUndefined();
  });
});

test('taking a command keeps what was typed after it', () => {
  expect(accept('/ex main.ts', { name: 'explain' })).toEqual({ text: '/explain main.ts', caret: 9 });
  expect(accept('/', { name: 'plan' })).toEqual({ text: '/plan ', caret: 6 });
});
