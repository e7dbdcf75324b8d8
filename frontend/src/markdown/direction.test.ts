// @vitest-environment node
import { expect, test } from 'vitest';
import { goesLeft } from './direction';

test.each([
  ['Read the file', false],
  ['קובץ אחד', true],
  ['`src/main.go` הוא הקובץ', true],
  ['[הקובץ](https://example.com)', true],
  ['<b>שלום</b>', true],
  ['- المنارة تدور', true],
  ['1. The word שלום', false],
  ['', false],
  ['42 …', false],
])('%j goes from right to left: %s', (text, expected) => {
  expect(goesLeft(text)).toBe(expected);
});
