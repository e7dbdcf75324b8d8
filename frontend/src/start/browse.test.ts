import { expect, test } from 'vitest';
import { closed, matching, opened, readTyped } from './browse';

test.each([
  ['/home/ada/', { directory: '/home/ada', prefix: '' }],
  ['/home/ada/wo', { directory: '/home/ada', prefix: 'wo' }],
  ['/ho', { directory: '/', prefix: 'ho' }],
  ['/', { directory: '/', prefix: '' }],
  ['~/wo', { directory: '/home/ada', prefix: 'wo' }],
  ['~', { directory: '/home', prefix: 'ada' }],
  ['wo', { directory: '/home/ada', prefix: 'wo' }],
  ['C:\\Users\\a', { directory: 'C:\\Users', prefix: 'a' }],
  ['C:\\U', { directory: 'C:\\', prefix: 'U' }],
])('%s', (text, expected) => {
  expect(readTyped(text, '/home/ada')).toEqual(expected);
});

test('a separator at the end comes and goes', () => {
  expect(opened('/a')).toBe('/a/');
  expect(opened('/')).toBe('/');
  expect(closed('/a/')).toBe('/a');
  expect(closed('/')).toBe('/');
  expect(closed('C:\\')).toBe('C:\\');
  expect(opened('C:\\a')).toBe('C:\\a\\');
});

test('names that fit, hidden ones only for the dot', () => {
  const items = ['.git', 'Docs', 'data'].map((name) => ({ name, path: `/${name}` }));
  const names = (prefix: string) => matching(items, prefix).map((item) => item.name);
  expect(names('')).toEqual(['Docs', 'data']);
  expect(names('d')).toEqual(['Docs', 'data']);
  expect(names('.')).toEqual(['.git']);
});
