import { expect, test } from 'vitest';
import { excerpt, mostBytes, plain } from './output';

test('codes that steer a terminal are left out', () => {
  expect(plain('\u001b[1;31mred\u001b[0m \u001b]0;title\u0007x\u001b]8;;http://a\u001b\\link')).toBe(
    'red xlink',
  );
  expect(plain('a\u0000b\u0008c\td')).toBe('abc\td');
});

test('a line that was drawn over itself ends as its last state', () => {
  expect(plain('10%\r50%\r100%\r\ndone\r')).toBe('100%\ndone');
});

test('of a long output the end is shown, and how many lines are not', () => {
  const lines = Array.from({ length: 500 }, (_, n) => `line ${n}`);
  const part = excerpt(lines.join('\n'));
  expect(part.hidden).toBe(300);
  expect(part.text.startsWith('line 300\n')).toBe(true);
  expect(part.text.endsWith('line 499')).toBe(true);
});

test('one endless line is cut as well', () => {
  const part = excerpt('x'.repeat(mostBytes * 3));
  expect(part.text.length).toBeLessThanOrEqual(mostBytes);
});

test('a short output is whole', () => {
  expect(excerpt('a\nb')).toEqual({ text: 'a\nb', hidden: 0 });
});
