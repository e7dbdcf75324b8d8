import { expect, test } from 'vitest';
import { limitOf, namesHosts } from './files';

test.each([
  ['', true],
  ['cdn.discordapp.com, media.discordapp.net', true],
  ['files.example.org:8443', true],
  ['https://files.example.org', false],
  ['*.example.org', false],
  ['one.example two.example', false],
  ['me@files.example.org', false],
])('hosts: %s', (list, fits) => {
  expect(namesHosts(list)).toBe(fits);
});

test.each([
  ['25', 25],
  [' 50 ', 50],
  ['51', undefined],
  ['0', undefined],
  ['', undefined],
  ['-1', undefined],
  ['2.5', undefined],
  ['1e1', undefined],
])('limits: %s', (text, limit) => {
  expect(limitOf(text, 50)).toBe(limit);
});
