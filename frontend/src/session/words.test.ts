import { expect, test } from 'vitest';
import { spansIn, termsOf } from './words';

const found = (text: string, query: string) =>
  spansIn(text, termsOf(query)).map(({ start, end }) => text.slice(start, end));

test.each([
  ['the last word may be the beginning of one', 'The lighthouse', 'the light', ['The', 'lighthouse']],
  ['the others may not', 'lighthouses stand', 'light stand', ['stand']],
  ['case and accents do not count', 'In ZÜRICH, zürich und Zurich', 'zurich', ['ZÜRICH', 'zürich', 'Zurich']],
  ['nor does how an accent is written', 'Zu\u0308rich', 'zurich', ['Zu\u0308rich']],
  ['a phrase stands in its order', 'red door, door red', '"red door"', ['red door']],
  ['and takes no beginnings', 'red doors', '"red door"', []],
  ['what must not be there is not shown', 'red door', 'red -door', ['red']],
  ['signs of Chinese are words of their own', '海の家', '海', ['海']],
  ['a row of them is a phrase', '海の家と家の海', '海の', ['海の']],
  ['what lies between words is nothing', 'a.b.c', 'b', ['b']],
  ['a word with signs in it is a phrase', 'call foo.bar(x) now', 'foo.ba', ['foo.bar']],
  ['nothing is found by nothing', 'text', '!? ""', []],
])('%s', (_, text, query, expected) => {
  expect(found(text, query)).toEqual(expected);
});

test('what overlaps is one', () => {
  expect(found('red door', '"red door" red')).toEqual(['red door']);
});
