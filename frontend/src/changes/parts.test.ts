import { describe, expect, test } from 'vitest';
import { diffTexts } from '../content/diff';
import { hunksOf, withHunks } from './parts';

const numbers = (n: number) => Array.from({ length: n }, (_, i) => `${i + 1}`);
const text = (lines: readonly string[]) => lines.join('\n') + '\n';

describe('the hunks of a difference', () => {
  const before = text(numbers(40));
  const changed = numbers(40);
  changed.splice(35, 1); // 36 goes
  changed.splice(19, 0, 'new'); // before 20
  changed[1] = 'two';
  const after = text(changed);
  const hunks = hunksOf(diffTexts(before, after));

  test('are its parts between lines that are not shown', () => {
    expect(hunks.map(({ added, removed }) => `+${added} -${removed}`)).toEqual(['+1 -1', '+1 -0', '+0 -1']);
  });

  test('all make the new text, none the old one', () => {
    expect(withHunks(before, after, hunks, new Set())).toBe(after);
    expect(withHunks(before, after, hunks, new Set([0, 1, 2]))).toBe(before);
  });

  test.each([0, 1, 2])('but number %i make a text that differs by the others', (n) => {
    const part = withHunks(before, after, hunks, new Set([n]));
    expect(hunksOf(diffTexts(before, part))).toHaveLength(2);
    expect(hunksOf(diffTexts(part, after))).toHaveLength(1);
  });
});

test.each([
  ['a new file', '', 'a\nb\n'],
  ['a file that is emptied', 'a\nb\n', ''],
  ['a last line without an end', 'a\nb', 'a\nc'],
  ['a last line that gets an end', 'a\nb', 'a\nc\n'],
  ['every line', 'a\n', 'b\n'],
  ['lines of Windows', 'a\r\nb\r\n', 'a\r\nc\r\n'],
  ['empty lines', '\n\n', '\n\n\n'],
])('%s has one hunk, with which the text is new and without which it is old', (_, before, after) => {
  const hunks = hunksOf(diffTexts(before, after));
  expect(hunks).toHaveLength(1);
  expect(withHunks(before, after, hunks, new Set())).toBe(after);
  expect(withHunks(before, after, hunks, new Set([0]))).toBe(before);
});
