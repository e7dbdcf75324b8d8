import { expect, test } from 'vitest';
import { changedWords, wordsOf } from './changed';
import { partsOf, putLine } from './coloured';
import { revealLine } from './reveal';

function put(...args: Parameters<typeof putLine>): HTMLElement {
  const element = document.createElement('span');
  putLine(...args)(element);
  return element;
}

test('the words that changed are marked, and lines with little in common are not', () => {
  expect(changedWords('if a < b {', 'if a <= b {')).toEqual([[], [[6, 7]]]);
  expect(changedWords('greet(name)', 'greet(person)')).toEqual([[[6, 10]], [[6, 12]]]);
  expect(changedWords('one two three', 'four five')).toBeUndefined();
  expect(changedWords('x'.repeat(3_000), 'y')).toBeUndefined();
});

test('words are compared where as many lines came as went', () => {
  const line = (kind: string, text: string) => ({ kind, text });
  const lines = [
    line('remove', 'call(a, 1)'),
    line('remove', 'call(b, 1)'),
    line('add', 'call(a, 2)'),
    line('add', 'call(b, 2)'),
    line('same', 'end'),
    line('add', 'call(c, 2)'),
  ];
  expect(lines.map((one) => wordsOf(lines).has(one))).toEqual([true, true, true, true, false, false]);
});

test('colours are parted where a changed word begins', () => {
  const element = put(
    'const name',
    [
      ['tok-keyword', 'const'],
      ['', ' name'],
    ],
    [[3, 10]],
    revealLine,
  );
  expect(element.innerHTML).toBe(
    '<span class="tok-keyword">con</span><span class="tok-keyword changed">st</span><span class=" changed"> name</span>',
  );
});

test('what is invisible is revealed, coloured or not, and text stays text', () => {
  for (const colours of [undefined, [['tok-string', '<b>\u202e</b>']] as const]) {
    const element = put('<b>\u202e</b>\r', colours, undefined, revealLine);
    expect(element.querySelector('b')).toBeNull();
    expect(element.textContent).toContain('<b>');
    expect(element.textContent).not.toContain('\u202e');
    expect(element.textContent).toBe(revealLine('<b>\u202e</b>\r'));
  }
  expect(put('', undefined, undefined, revealLine).textContent).toBe(' ');
});

test('colours of another text are not used', () => {
  expect(partsOf([['', 'a']], 'b')).toBeUndefined();
});
