import { expect, test } from 'vitest';
import { changedRows, type Row } from './changed';

const told = (rows: Row[]) =>
  rows.map(({ kind, parts }) => {
    const sign = kind === 'add' ? '+' : kind === 'remove' ? '-' : ' ';
    return sign + parts.map(({ text, changed }) => (changed ? `[${text}]` : text)).join('');
  });

test('the words of a line that have changed are marked, and no word is left out', () => {
  const before = 'run --stations all --language en\nenv: KEY';
  const after = 'run --stations all --upload https://elsewhere.example\nenv: KEY';
  const rows = changedRows(before, after);
  expect(told(rows)).toEqual([
    '-run --stations all [--language ][en]',
    '+run --stations all [--upload ][https://elsewhere.example]',
    ' env: KEY',
  ]);
  const side = (kind: 'add' | 'remove') =>
    rows
      .filter((row) => row.kind === 'same' || row.kind === kind)
      .map(({ parts }) => parts.map(({ text }) => text).join(''));
  expect(side('remove').join('\n')).toBe(before);
  expect(side('add').join('\n')).toBe(after);
});

test('no unchanged line is folded away', () => {
  const lines = Array.from({ length: 40 }, (_, n) => `line ${n}`);
  expect(changedRows(lines.join('\n'), [...lines, 'last'].join('\n'))).toHaveLength(41);
});

test('lines that came or went alone are marked whole', () => {
  expect(told(changedRows('a\nb', 'a'))).toEqual([' a', '-b']);
  expect(told(changedRows('a', 'a\nb c'))).toEqual([' a', '+b c']);
  expect(told(changedRows('a\nb', 'c'))).toEqual(['-a', '-b', '+c']);
});
