import { expect, test } from 'vitest';
import { advance, empty, pieces, whole } from './blocks';
import { inParts, type Part } from './parts';
import { html } from './render';

const page = (n: number) =>
  [
    `## Part ${n}`,
    'A paragraph of the answer. '.repeat(8),
    Array.from({ length: 9 }, (_, at) => `- item ${at}`).join('\n'),
    `\`\`\`go\n${'return nil\n'.repeat(30)}\`\`\``,
    `| a | b |\n|---|---|\n${'| 1 | 2 |\n'.repeat(20)}`,
  ].join('\n\n');
const text = Array.from({ length: 12 }, (_, n) => page(n)).join('\n\n');

const shown = (parts: readonly Part[]) =>
  parts.flatMap((part) => part.pieces.map((piece) => html(...piece.tokens))).join('');

test('a text in parts is the same text, and none of them is much', () => {
  const of = whole(text);
  for (const streams of [true, false]) {
    const parts = inParts([], of, streams);
    expect(parts.length).toBeGreaterThan(12);
    expect(parts.length).toBeLessThan(60);
    const all = pieces(of.blocks, true);
    expect(shown(parts).replace(/\s+/g, '')).toBe(
      all
        .map((piece) => html(...piece.tokens))
        .join('')
        .replace(/\s+/g, ''),
    );
    expect(new Set(parts.map((part) => part.key)).size).toBe(parts.length);
    for (const part of parts) expect(part.height).toBeLessThan(1_300);
  }
});

test('while text streams in, parts that are full stay the very same', () => {
  let blocks = empty;
  let parts: readonly Part[] = [];
  const seen = new Map<number, Part>();
  for (let at = 0; at < text.length + 97; at += 97) {
    blocks = advance(blocks, text.slice(0, at));
    parts = inParts(parts, blocks, true);
    for (const part of parts) {
      const before = seen.get(part.key);
      if (before) expect(part).toBe(before);
      if (part.closed) seen.set(part.key, part);
    }
    expect(parts.filter((part) => !part.closed).length).toBeLessThanOrEqual(3);
  }
  expect(shown(parts)).toBe(shown(inParts([], whole(text), true)));
});

test('what is parsed anew is cut anew', () => {
  const first = whole(text);
  const parts = inParts([], first, true);
  const anew = inParts(parts, whole(text), true);
  expect(anew.map((part) => part.key)).toEqual(parts.map((part) => part.key));
  expect(anew.some((part) => parts.includes(part))).toBe(false);
});
