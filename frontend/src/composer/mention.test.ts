import { expect, test } from 'vitest';
import { mentionAt, mentioned } from './mention';

/** The caret stands at the bar. */
function at(marked: string) {
  const caret = marked.indexOf('|');
  return mentionAt(marked.replace('|', ''), caret);
}

test.each([
  ['@|', { from: 0, typed: '' }],
  ['@sr|c', { from: 0, typed: 'sr' }],
  ['look at @src/ma|', { from: 8, typed: 'src/ma' }],
  ['(@a|', { from: 1, typed: 'a' }],
  ['line\n@a|', { from: 5, typed: 'a' }],
  ['@a b|', undefined],
  ['ada@example|', undefined],
  ['@@|', undefined],
  ['|@a', undefined],
  ['', undefined],
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
