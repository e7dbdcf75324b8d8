import { expect, test } from 'vitest';
import { isLong, longText, pasted } from './paste';

const picture = new File(['x'], 'image.png', { type: 'image/png' });

function data(words: string, files: File[] = [], ...types: string[]) {
  return { files: files as unknown as FileList, types, getData: () => words };
}

test('a picture is a file, unless it stands beside the words that it shows', () => {
  expect(pasted(data('', [picture], 'Files'), false)).toEqual({ files: [picture] });
  expect(pasted(data('name.png', [picture], 'Files', 'text/plain'), false)).toEqual({ files: [picture] });
  expect(pasted(data('1\t2', [picture], 'Files', 'text/plain', 'text/html'), false)).toBeUndefined();
});

test('a long text is a file, unless the person wants it as text', () => {
  const long = 'a'.repeat(longText + 1);
  expect(pasted(data(long, [], 'text/plain'), false)).toEqual({ long });
  expect(pasted(data(long, [], 'text/plain'), true)).toBeUndefined();
  expect(pasted(data('short', [], 'text/plain'), false)).toBeUndefined();
});

test('what the engine keeps to itself is asked for elsewhere', () => {
  expect(pasted(data(''), false)).toEqual({ nothing: true });
  expect(pasted(data(''), true)).toBeUndefined();
});

test.each([
  ['a'.repeat(longText), false],
  ['a'.repeat(longText + 1), true],
  ['ü'.repeat(longText / 2), false],
  ['ü'.repeat(longText / 2 + 1), true],
  ['', false],
])('bytes count', (text, long) => {
  expect(isLong(text)).toBe(long);
});
