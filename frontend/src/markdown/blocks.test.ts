import { Lexer } from 'marked';
import { describe, expect, test, vi } from 'vitest';
import { advance, empty, pieces, whole, type Blocks } from './blocks';
import { html } from './render';
import { lex } from './rules';

const sample = `# Title

A paragraph with **bold**, \`code\` and a [link](https://example.com).
It has two lines.

- one
- two
  - nested

- loose three

1. first

2. second
3. third

> quote
> goes on

\`\`\`ts
const a = 1;

const b = 2;
\`\`\`

| a | b |
|---|---|
| 1 | 2 |
| 3 | 4 |

A line.

| a | b |
|---|---|
| 5 | 6 |
- 7

~~~
const c = 3;
~~~

- eight

9

10. ten

Setext
======

    indented

    still indented

<div>

text in html

</div>

---

Last words without an end`;

const shown = (blocks: Blocks) =>
  blocks.blocks
    .filter((block) => block.token.type !== 'space')
    .map((block) => html(block.token))
    .join('');

function stream(source: string, sizes: () => number): Blocks {
  let blocks = empty;
  for (let at = 0; at < source.length;) {
    at += sizes();
    blocks = advance(blocks, source.slice(0, at));
  }
  return blocks;
}

/** A small generator of pseudo-random numbers, the same in every run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state;
  };
}

describe('streamed text', () => {
  test('is shown like the same text at once, whatever the pieces are', () => {
    const expected = shown(whole(sample));
    expect(shown(stream(sample, () => 1))).toBe(expected);
    for (let seed = 1; seed <= 60; seed++) {
      const next = numbers(seed);
      expect(shown(stream(sample, () => 1 + (next() % 23)))).toBe(expected);
    }
  });

  test('parses finished blocks once: only the end is parsed again', () => {
    const parse = vi.fn(lex);
    const paragraph = 'Some words of an answer that goes on for a while. '.repeat(4);
    let source = '';
    let blocks = empty;
    for (let n = 0; n < 200; n++) {
      source += `${paragraph}\n\n`;
      blocks = advance(blocks, source, parse);
    }
    const longest = Math.max(...parse.mock.calls.map(([text]) => text.length));
    expect(longest).toBeLessThan(paragraph.length * 4);
    expect(blocks.blocks.filter((block) => block.token.type === 'paragraph')).toHaveLength(200);
  });

  test('what a blank line has ended is not parsed again for the line below it', () => {
    const table = `| a | b |\n|---|---|\n${'| `one` | *two* |\n'.repeat(40)}`;
    for (const above of [table, '```go\nx\n```\n', '## Title\n', 'Words.\n']) {
      const parse = vi.fn(lex);
      let blocks = advance(empty, `${above}\nOne`, parse);
      for (const word of ['One line', 'One line grows']) blocks = advance(blocks, `${above}\n${word}`, parse);
      expect(parse.mock.lastCall?.[0]).toBe('One line grows');
    }
  });

  test('keeps the very blocks that are finished', () => {
    const first = advance(empty, 'One.\n\nTwo.\n\nThr');
    const second = advance(first, 'One.\n\nTwo.\n\nThree.');
    expect(second.blocks[0]).toBe(first.blocks[0]);
    expect(second.blocks.at(-1)?.raw).toBe('Three.');
  });

  test('a fence that is open stays one block', () => {
    const open = advance(empty, '```\nline\n\nline');
    expect(open.blocks).toHaveLength(1);
    expect(open.finished).toBe(0);
  });
});

test('text that does not continue the old one is parsed anew', () => {
  const old = advance(empty, 'One.\n\nTwo.\n\nThree.');
  expect(shown(advance(old, 'Else.\n\nTwo.'))).toBe(shown(whole('Else.\n\nTwo.')));
  // The result is the same where only the last part was replaced.
  expect(shown(advance(old, 'One.\n\nTwo.\n\nFour.'))).toBe(shown(whole('One.\n\nTwo.\n\nFour.')));
});

test('headings that are underlined are those of the parser', () => {
  for (const text of [
    'One\n===\n\nTwo\nand a half\n  ---\nThree\n\n=\n\nFour\n \n---\n',
    'One\n-',
    'One\n- a\n- b\n\nTwo\n    ===\n\n> Three\n> ===\n\n- Four\n  ===\n',
    'One\n\n===',
    'One\n \nTwo\n=====\n',
  ]) {
    expect([...lex(text, {})]).toEqual([...new Lexer({ gfm: true }).lex(text)]);
  }
});

test('the same text gives the same blocks', () => {
  const blocks = advance(empty, 'One.');
  expect(advance(blocks, 'One.')).toBe(blocks);
});

test('characters that the lexer replaces do not shift what follows', () => {
  const source = 'One\r\n\r\n- a\r\n- b\r\n\r\nTwo\r\n\r\nThree';
  const streamed = stream(source, () => 1);
  expect(shown(streamed)).toBe(shown(whole(source)));
  expect(streamed.finished).toBeGreaterThanOrEqual(3);
});

test('a link that is defined after its use is resolved by the last parse', () => {
  const source = 'See [it][1].\n\nMore.\n\n[1]: https://example.com\n\nEnd.';
  const streamed = stream(source, () => 5);
  expect(streamed.unsure).toBe(true);
  expect(shown(whole(source))).toContain('href="https://example.com/"');
});

test('a link that is defined before its use holds for later blocks', () => {
  const source = '[1]: https://example.com\n\nMore.\n\nSee [it][1].\n';
  expect(shown(stream(source, () => 7))).toContain('href="https://example.com/"');
});

describe('pieces', () => {
  const kinds = (source: string, streams: boolean) =>
    pieces(whole(source).blocks, streams).map((piece) => piece.tokens.map((token) => token.type).join('+'));
  const source = 'One.\n\n- a\n- b\n\n```go\nx\n```\n\nTwo <b>x.\n\nThree.\n\nFour.';

  test('put together what follows each other, but neither code nor what holds HTML', () => {
    expect(kinds(source, false)).toEqual(['paragraph+list', 'code', 'paragraph', 'paragraph+paragraph']);
  });

  test('are single blocks while text streams in', () => {
    expect(kinds(source, true)).toEqual(['paragraph', 'list', 'code', 'paragraph', 'paragraph', 'paragraph']);
  });

  test('show what the blocks show', () => {
    const shown = (streams: boolean) =>
      pieces(whole(source).blocks, streams)
        .map((piece) => html(...piece.tokens))
        .join('')
        .replace(/\s+</g, '<');
    expect(shown(false)).toBe(shown(true));
  });
});

// An agent may print any text. Each of these took the parser half a minute to hours, during which the window did not respond.
test.each([
  ['emphasis that does not end', '*a '.repeat(60_000) + 'a*'],
  ['emphasis within emphasis', '**a '.repeat(20_000) + 'a**'.repeat(20_000)],
  ['an address that ends with signs', 'http://a' + '!'.repeat(200_000)],
  ['a word of addresses', 'https://a'.repeat(28_000)],
  ['markup that does not end', 'a' + '<?'.repeat(400_000)],
  ['a word with signs', 'a!'.repeat(200_000)],
  ['a word of base64url', 'aB_c'.repeat(80_000)],
  ['links without a space', '[a](b)'.repeat(80_000)],
  ['quotations within quotations', '>'.repeat(100_000)],
  ['lists within lists', '- '.repeat(100_000) + 'a'],
  ['a list with much below it', '- a\n' + '- '.repeat(30_000) + '===\n'.repeat(15_000)],
  ['a list with much room', '- a\n-' + ' '.repeat(60_000) + '-\n' + '===\n'.repeat(15_000)],
])('%s', (_, text) => {
  expect(
    lex(text, {})
      .map((token) => token.raw)
      .join(''),
  ).toBe(text);
});

test('a log or a listing that stands in a paragraph takes nothing from what follows', () => {
  const log = Array.from(
    { length: 300 },
    (_, n) => `[INFO] (${n}) the_name_of_it = a <b> && c!, as of ${n}`,
  ).join('\n');
  const source = `${log}\n\n`.repeat(3) + 'And **this**, with a [link](https://example.com).';
  expect(html(...lex(source, {}))).toContain('<strong>this</strong>, with a <a ');
});

test('what people write is read as Marked reads it, which knows no footnotes', () => {
  const texts = Object.values(
    import.meta.glob<string>('../../../docs/**/*.md', { query: '?raw', import: 'default', eager: true }),
  ).filter((text) => !/^\[\^/m.test(text));
  expect(texts.length).toBeGreaterThan(50);
  for (const text of texts) expect([...lex(text, {})]).toEqual([...new Lexer({ gfm: true }).lex(text)]);
});
