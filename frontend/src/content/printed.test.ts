import { afterEach, expect, test, vi } from 'vitest';
import { plain } from './output';
import { mostBytes, Printed, type Run } from './printed';

afterEach(() => vi.restoreAllMocks());

function printed(...pieces: string[]): Printed {
  const all = new Printed();
  let text = '';
  for (const piece of pieces) all.take((text += piece));
  return all;
}

const textOf = (runs: readonly Run[]) => runs.map((run) => run.text).join('');
const brief = (runs: readonly Run[]) => runs.map(({ text, look }) => (look ? [text, look.fg?.[0]] : text));

test('colours are kept, what else steers a terminal is left out', () => {
  const { runs } = printed(
    '\u001b[1;31mred\u001b[m \u001b]0;title\u0007x\u001b]8;;http://a\u001b\\link\u001b[2K\u001b(B',
  ).excerpt();
  expect(brief(runs)).toEqual([['red', '#b43524'], ' xlink']);
  expect(runs[0]?.look?.bold).toBe(true);
  expect(textOf(printed('a\u0000b\u0008c\td').excerpt().runs)).toBe('abc\td');
});

test('a colour lasts over lines, and what looks alike is one', () => {
  const { runs } = printed('a\nb\u001b[32mc\nd\u001b[32m\u001b[1me\u001b[22mf\u001b[0m\n').excerpt();
  expect(brief(runs)).toEqual([
    'a\nb',
    ['c', '#1c7048'],
    '\n',
    ['d', '#1c7048'],
    ['e', '#1c7048'],
    ['f', '#1c7048'],
  ]);
});

test('a line that was drawn over itself is what it is now', () => {
  expect(textOf(printed('10%\r50%\r100%\r\ndone\r').excerpt().runs)).toBe('100%\ndone');
  expect(brief(printed('\u001b[31m10%\r', '\u001b[32m', '20%').excerpt().runs)).toEqual([['20%', '#1c7048']]);
});

const sample =
  'start\r\n\u001b[31mred \u001b[1mbold\u001b[0m\n\u001b]0;a title\u0007 10%\r 20%\u001b[K\r 100%\n\u001b[38;5;208mo\u001b[48;2;1;2;3mx\u001b[m\u001b(B\r\n\r\nend\u001b[2';

test('it comes to the same in whatever pieces it is printed', () => {
  const whole = brief(printed(sample).excerpt().runs);
  for (let size = 1; size <= 12; size++) {
    const pieces = sample.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
    expect(brief(printed(...pieces).excerpt().runs), `pieces of ${size}`).toEqual(whole);
  }
  expect(printed(sample).text).toBe(plain(sample.slice(0, -3)));
});

test('what was read is not read again', () => {
  let read = 0;
  const replace = RegExp.prototype[Symbol.replace];
  vi.spyOn(RegExp.prototype, Symbol.replace).mockImplementation(function (
    this: RegExp,
    text: string,
    by: unknown,
  ) {
    read += text.length;
    return replace.call(this, text, by as () => string);
  });
  const pieces = Array.from({ length: 1_000 }, (_, n) => `\u001b[3${n % 8}mline ${n}\u001b[0m\n`);
  printed(...pieces);
  expect(read).toBeLessThanOrEqual(pieces.join('').length * 3); // each piece, by as many patterns
});

test('another text begins anew', () => {
  const one = printed('\u001b[31mred\nand');
  one.take('other');
  expect(brief(one.excerpt().runs)).toEqual(['other']);
});

const numbered = (count: number) => Array.from({ length: count }, (_, n) => `line ${n}`).join('\n');

test('of a long output the head and the tail are shown, and how many lines are between', () => {
  const long = printed(numbered(500) + '\n\n');
  const part = long.excerpt();
  expect(textOf(part.head)).toBe(numbered(30));
  expect(part.hidden).toBe(300);
  expect(textOf(part.runs).startsWith('line 330\n')).toBe(true);
  expect(textOf(part.runs).endsWith('line 499')).toBe(true);
  expect(textOf(long.excerpt(true).runs)).toBe(numbered(500));
  expect(printed(numbered(200)).excerpt().hidden).toBe(0);
});

test('the two ends of a text without its middle are cut on their inner sides', () => {
  const head = printed(numbered(100) + '\n').excerpt(false, 'head');
  expect([textOf(head.head), head.hidden, textOf(head.runs)]).toEqual([numbered(30), 70, '']);
  const tail = printed(numbered(500)).excerpt(false, 'tail');
  expect([textOf(tail.head), tail.hidden]).toEqual(['', 330]);
  expect(textOf(tail.runs).endsWith('line 499')).toBe(true);
});

test('one endless line is cut as well', () => {
  const { head, cut, runs } = printed(
    'a\n' + 'x'.repeat(mostBytes) + '\u001b[31m' + 'y'.repeat(mostBytes / 2),
  ).excerpt();
  expect([textOf(head), cut]).toEqual(['a', mostBytes / 2]);
  expect(textOf(runs).length).toBe(mostBytes);
  expect(runs.at(-1)?.text.length).toBe(mostBytes / 2);
});

test('what changes its colour all the time is coloured at its end alone, and loses nothing', () => {
  const text = 'ab'.repeat(30_000);
  const gaudy = printed(text.replaceAll('a', '\u001b[31ma').replaceAll('b', '\u001b[32mb'));
  for (const all of [false, true]) {
    const { runs } = gaudy.excerpt(all);
    expect(runs.length).toBe((all ? 20_000 : 2_000) + 1);
    expect(runs[0]?.look).toBeUndefined();
    expect(brief(runs.slice(-2))).toEqual([
      ['a', '#b43524'],
      ['b', '#1c7048'],
    ]);
    expect(textOf(runs)).toBe(text);
  }
});

test('a short output is whole', () => {
  expect(printed('a\nb').excerpt()).toEqual({
    head: [],
    hidden: 0,
    cut: 0,
    runs: [{ text: 'a\nb', look: undefined }],
  });
  expect(printed('\n\n').excerpt()).toEqual({ head: [], hidden: 0, cut: 0, runs: [] });
});
