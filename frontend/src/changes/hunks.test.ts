import { describe, expect, test } from 'vitest';
import type { FileDiff, Hunk } from '../api/records';
import { partsOf } from '../content/coloured';
import { coloursOf, countOf, split, unified, windowsEnds, wordsOfRows, type Row } from './hunks';

function hunk(text: string, part: Partial<Hunk> = {}): Hunk {
  const lines = text
    .split('\n')
    .map((line) => ({ op: line.charAt(0) as ' ' | '+' | '-', text: line.slice(1) }));
  const of = (op: string) => lines.filter((line) => line.op === ' ' || line.op === op).length;
  return {
    id: 'h1',
    oldStart: 10,
    oldLines: of('-'),
    newStart: 12,
    newLines: of('+'),
    heading: '',
    lines,
    kept: false,
    revertable: true,
    ...part,
  };
}

const drawn = (rows: Row[]) =>
  rows.map(
    ({ op, old, new: now }) =>
      `${old ? `${old.number} ${old.text}` : '-'} ${op} ${now ? `${now.number} ${now.text}` : '-'}`,
  );

const sample = hunk(' a\n-b\n-c\n+B\n d\n+e');

describe('rows of a hunk', () => {
  test('in one column', () => {
    expect(drawn(unified(sample))).toEqual([
      '10 a   12 a',
      '11 b - -',
      '12 c - -',
      '- + 13 B',
      '13 d   14 d',
      '- + 15 e',
    ]);
  });

  test('in two columns', () => {
    expect(drawn(split(sample))).toEqual([
      '10 a   12 a',
      '11 b ± 13 B',
      '12 c - -',
      '13 d   14 d',
      '- + 15 e',
    ]);
  });

  test('in two columns: what went after something came took the place of none of it', () => {
    expect(drawn(split(hunk('+a\n-b\n+c')))).toEqual(['- + 12 a', '10 b ± 13 c']);
  });

  test('are counted', () => {
    expect(countOf(sample)).toEqual({ added: 2, removed: 2 });
  });

  test('end as on Windows only where all do', () => {
    expect(windowsEnds([hunk(' a\r\n+b\r')])).toBe(true);
    expect(windowsEnds([hunk(' a\r\n+b')])).toBe(false);
    expect(windowsEnds([])).toBe(false);
  });
});

describe('colours', () => {
  const file = (part: Partial<FileDiff> = {}): FileDiff => ({
    path: 'src/a.ts',
    kind: 'modified',
    binary: false,
    large: false,
    now: 'same',
    hunks: [sample],
    ...part,
  });
  /** Returns a painter that colours each line by its kind and records its calls. */
  const asked: string[] = [];
  const paint = (text: string, language: string) => {
    asked.push(`${language}: ${text.replaceAll('\n', '|')}`);
    return Promise.resolve(text.split('\n').map((line) => [['tok-x', line] as const]));
  };

  test('come from whole texts, by the number of the line', async () => {
    asked.length = 0;
    const colours = await coloursOf(file({ before: 'one\ntwo', after: 'one\nTWO' }), paint);
    expect(asked).toEqual(['typescript: one|two', 'typescript: one|TWO']);
    expect(colours?.new.get(2)).toEqual([['tok-x', 'TWO']]);
  });

  test('come from the hunks where the texts are not known', async () => {
    asked.length = 0;
    const colours = await coloursOf(file(), paint);
    expect(asked).toEqual(['typescript: a|b|c|d', 'typescript: a|B|d|e']);
    expect(colours?.old.get(11)).toEqual([['tok-x', 'b']]);
    expect(colours?.new.get(15)).toEqual([['tok-x', 'e']]);
  });

  test('are none without a language', async () => {
    expect(await coloursOf(file({ path: 'LICENSE' }), paint)).toBeUndefined();
    expect(await coloursOf(file(), () => Promise.resolve(undefined))).toBeUndefined();
  });

  test('are left out where they are those of another text', () => {
    const line = [
      ['tok-x', 'con'],
      ['', 'st'],
    ] as const;
    expect(partsOf(line, 'const')).toBe(line);
    expect(partsOf(line, 'const\r')).toBe(line);
    expect(partsOf(line, 'var')).toBeUndefined();
  });
});

test('the words that a line has changed are known by cell, beside each other and below each other', () => {
  const change = hunk('-return greet(name)\n+return greet(person)');
  for (const rows of [unified(change), split(change)]) {
    const words = [...wordsOfRows(rows)].map(([cell, ranges]) => [cell.text, ranges]);
    expect(words).toEqual([
      ['return greet(name)', [[13, 17]]],
      ['return greet(person)', [[13, 19]]],
    ]);
  }
});
