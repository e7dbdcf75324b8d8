import { expect, test } from 'vitest';
import { readForges, usesOf, writeForges } from './forges';

test.each([
  ['', []],
  ['github.com=gh', [{ host: 'github.com', use: 'gh' }]],
  [
    ' github.com=gh,git.example.org:3000=page ',
    [
      { host: 'github.com', use: 'gh' },
      { host: 'git.example.org:3000', use: 'page' },
    ],
  ],
  ['github.com, =gh, gitlab.com=git', []],
])('%s: the hosts of a setting', (setting, list) => {
  expect(readForges(setting)).toEqual(list);
});

test('a host with a port is left to the browser', () => {
  expect([usesOf('github.com').length, usesOf('git.example.org:3000')]).toEqual([3, ['page']]);
});

test('what is written is read again', () => {
  const list = [
    { host: 'a.example', use: 'gh' },
    { host: 'b.example:1', use: 'page' },
  ] as const;
  expect(readForges(writeForges(list))).toEqual(list);
});
