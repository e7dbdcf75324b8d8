import { expect, test } from 'vitest';
import { mentionAt, mentioned, named } from './mention';

/** Returns the mention in a text whose caret is at the bar. */
function at(marked: string) {
  const caret = marked.indexOf('|');
  return mentionAt(marked.replace('|', ''), caret);
}

test.each([
  ['@|', { sign: '@', from: 0, typed: '' }],
  ['@sr|c', { sign: '@', from: 0, typed: 'sr' }],
  ['look at @src/ma|', { sign: '@', from: 8, typed: 'src/ma' }],
  ['(@a|', { sign: '@', from: 1, typed: 'a' }],
  ['line\n@a|', { sign: '@', from: 5, typed: 'a' }],
  ['@a b|', undefined],
  ['ada@example|', undefined],
  ['@@|', undefined],
  ['|@a', undefined],
  ['', undefined],
  ['as in #lamp|', { sign: '#', from: 6, typed: 'lamp' }],
  ['#|', { sign: '#', from: 0, typed: '' }],
  ['use $re|', { sign: '$', from: 4, typed: 're' }],
  ['fixes #12|', undefined],
  ['for $5|', undefined],
  ['a#b|', undefined],
  ['## Title|', undefined],
  ['##|', undefined],
])('%s', (marked, mention) => {
  expect(at(marked)).toEqual(mention);
});

test('the path takes the place of what was typed', () => {
  const typed = { from: 5, typed: 'ma' };
  expect(mentioned('read @ma now', typed, 'src/main.ts', false)).toEqual({
    text: 'read @src/main.ts now',
    caret: 18,
  });
  expect(mentioned('read @ma', typed, 'src/main.ts', false)).toEqual({
    text: 'read @src/main.ts ',
    caret: 18,
  });
  expect(mentioned('read @ma now', typed, 'src', true)).toEqual({ text: 'read @src/ now', caret: 10 });
});

test('a name takes the place of what was typed', () => {
  const mention = { sign: '#', from: 3, typed: 'la' } as const;
  expect(named('as #la said', mention, 'The lamp')).toEqual({ text: 'as #The lamp said', caret: 13 });
  expect(named('as #la', mention, 'The lamp')).toEqual({ text: 'as #The lamp ', caret: 13 });
});
