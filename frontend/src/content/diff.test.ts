import { describe, expect, test } from 'vitest';
import { diffTexts, readPatch, type Line } from './diff';

/** Returns the lines as a unified diff writes them. */
function written(lines: readonly Line[]): string[] {
  return lines.map((line) => {
    switch (line.kind) {
      case 'same':
        return ` ${line.before}/${line.after} ${line.text}`;
      case 'add':
        return `+${line.after} ${line.text}`;
      case 'remove':
        return `-${line.before} ${line.text}`;
      case 'gap':
        return `… ${line.hidden}`;
      case 'meta':
        return `@ ${line.text}`;
    }
  });
}

const numbered = (count: number) => Array.from({ length: count }, (_, n) => `line ${n + 1}`);

describe('two texts', () => {
  test('show what changed with its numbers', () => {
    const { lines, added, removed } = diffTexts('a\nb\nc\n', 'a\nB\nc\nd\n');
    expect(written(lines)).toEqual([' 1/1 a', '-2 b', '+2 B', ' 3/3 c', '+4 d']);
    expect([added, removed]).toEqual([2, 1]);
  });

  test('that are the same show nothing but how much', () => {
    expect(written(diffTexts('a\nb', 'a\nb').lines)).toEqual(['… 2']);
  });

  test('fold what is far from any change', () => {
    const before = numbered(20);
    const after = before.with(9, 'changed');
    expect(written(diffTexts(before.join('\n'), after.join('\n')).lines)).toEqual([
      '… 6',
      ' 7/7 line 7',
      ' 8/8 line 8',
      ' 9/9 line 9',
      '-10 line 10',
      '+10 changed',
      ' 11/11 line 11',
      ' 12/12 line 12',
      ' 13/13 line 13',
      '… 7',
    ]);
  });

  test('of which one is empty are all added or all removed', () => {
    expect(diffTexts('', 'a\nb').added).toBe(2);
    expect(diffTexts('a\nb', '').removed).toBe(2);
    expect(diffTexts('', '').lines).toEqual([]);
  });

  test('give back the new text from the old one, whatever changed', () => {
    let state = 7;
    const next = (below: number) => (state = (state * 48_271) % 2_147_483_647) % below;
    for (let round = 0; round < 200; round++) {
      const before = Array.from({ length: next(12) }, () => String(next(4)));
      const after = Array.from({ length: next(12) }, () => String(next(4)));
      const { lines, added, removed } = diffTexts(before.join('\n'), after.join('\n'));
      const hidden = lines.some((line) => line.kind === 'gap');
      if (hidden) continue;
      const text = (kinds: string[]) =>
        lines.filter((line) => kinds.includes(line.kind)).map((line) => 'text' in line && line.text);
      expect(text(['same', 'add'])).toEqual(after);
      expect(text(['same', 'remove'])).toEqual(before);
      expect(added - removed).toBe(after.length - before.length);
    }
  });

  test('that have nothing in common are compared coarsely', () => {
    const before = numbered(20_000).join('\n');
    const after = numbered(20_000)
      .map((line) => `${line}!`)
      .join('\n');
    const diff = diffTexts(before, after);
    expect(diff.coarse).toBe(true);
    expect([diff.added, diff.removed]).toEqual([20_000, 20_000]);
  });
});

test('a patch of git is read with its numbers', () => {
  const patch =
    'diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -3,3 +3,3 @@ func\n a\n-b\n+c\n\\ No newline\n';
  const { lines, added, removed } = readPatch(patch);
  expect(written(lines)).toEqual([
    '@ diff --git a/x b/x',
    '@ --- a/x',
    '@ +++ b/x',
    '@ @@ -3,3 +3,3 @@ func',
    ' 3/3 a',
    '-4 b',
    '+4 c',
    '@ \\ No newline',
  ]);
  expect([added, removed]).toEqual([1, 1]);
});
