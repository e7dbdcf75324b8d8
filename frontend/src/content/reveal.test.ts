import { describe, expect, test } from 'vitest';
import { hides, lineHides, reveal, revealLine } from './reveal';

describe('text that is decided about', () => {
  test.each([
    ['ls \u202e/etc', 'ls [U+202E]/etc'], // reads backwards
    ['rm\u200b -rf', 'rm[U+200B] -rf'],
    ['a\u00a0b', 'a[U+00A0]b'], // a shell does not treat U+00A0 as a space
    ['a\rb\u001b[2J\u0000', 'a[U+000D]b[U+001B][2J[U+0000]'],
    ['\u{e0041}\u{e0100}', '[U+E0041][U+E0100]'], // a tag, a variation
    ['\u2066x\u2069\u061c\u3164', '[U+2066]x[U+2069][U+061C][U+3164]'],
  ])('%j hides nothing', (text, shown) => {
    expect(reveal(text)).toBe(shown);
    expect(hides(text)).toBe(true);
    expect(hides(text)).toBe(true); // the regular expression keeps no state between calls
  });

  test.each(['git commit -m "für Ödön"', 'a\n\tb', 'שלום', '日本', '🙂 ❤\ufe0f', ''])('%j stays', (text) => {
    expect(reveal(text)).toBe(text);
    expect(hides(text)).toBe(false);
  });
});

test.each([
  ['if (a) {\r', 'if (a) {␍', false],
  ['// \u202e } \u2066if (admin)\u2069', '// [U+202E] } [U+2066]if (admin)[U+2069]', true], // code that runs differently from how it reads
  ['a\rb', 'a[U+000D]b', true],
  ['\tplain', '\tplain', false],
])('a line of a file: %j', (text, shown, hidden) => {
  expect(revealLine(text)).toBe(shown);
  expect(lineHides(text)).toBe(hidden);
});
