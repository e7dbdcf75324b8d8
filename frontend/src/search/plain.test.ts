import { expect, test } from 'vitest';
import { plain } from './plain';

/** Converts a text with its hits between « and » to an excerpt, and back. */
const cut = (text: string) =>
  text
    .split(/[«»]/)
    .map((text, n) => (n % 2 ? { text, hit: true } : { text }))
    .filter(({ text }) => text !== '');
const told = (text: string) =>
  plain(cut(text))
    .map((part) => (part.hit ? `«${part.text}»` : part.text))
    .join('')
    .trimEnd();

test.each([
  ['The lamp is **slow in a «storm»** now.', 'The lamp is slow in a «storm» now.'],
  [
    'from 10 on, `Turn` **halves** the *«period»*, ~~twice~~ _really_',
    'from 10 on, Turn halves the «period», twice really',
  ],
  [
    'see [the «guide»](https://example.org/a_b "Guide") and ![a lamp](lamp.png)',
    'see the «guide» and a lamp',
  ],
  ['<https://«example».org/a_b_c>', 'https://«example».org/a_b_c'],
  ['# The «lamp»', 'The «lamp»'],
  ['Done. ## What «changed» here', 'Done. What «changed» here'],
  ['- `lamp.go`: «mended»', 'lamp.go: «mended»'],
  ['Run ```sh go test ./... | grep **«FAIL»** ``` now', 'Run go test ./... | grep **«FAIL»** now'],
  [
    'now: | wind | before | now | |---|:-:|--:| | «calm» | 10 s | 20 s |',
    'now: · wind · before · now · «calm» · 10 s · 20 s',
  ],
  ['\\*not\\* «emphasis»', '*not* «emphasis»'],
  // The other half of the mark is beyond the cut.
  ['… slow in a «storm»** now, and `Gale', '… slow in a «storm» now, and `Gale'],
  ['the «notes» are in **notes/keeper and more …', 'the «notes» are in notes/keeper and more …'],
  ['the «notes» of [the keeper](https://example …', 'the «notes» of the keeper …'],
])('%s', (markdown, text) => {
  expect(told(markdown)).toBe(text);
});

test.each([
  '2 * 3 * «4» and a ** b',
  'snake_case_«name» in a_b',
  'a «pipe» | another',
  'if a < b && c > «d»',
  'issue # 5 of «five» - well',
  'f(**«kwargs») alone',
])('what is no markup stays: %s', (text) => {
  expect(told(text)).toBe(text);
});

test('what was looked for is never taken out', () => {
  expect(told('see [it](https://«example».org/x)')).toContain('«example»');
  expect(told('```«go» x := 1 ```')).toBe('«go» x := 1');
});
