import { beforeAll, describe, expect, test } from 'vitest';
import { advance, empty, whole } from './blocks';
import { drawing, extras } from './late';
import type { Formula } from './formula';
import { copied, draw } from './formulas';
import { html } from './render';

beforeAll(() => extras.load());

/** Returns the formulas of a text, and the rest of the text. */
function found(source: string): { formulas: string[]; text: string } {
  const host = document.createElement('div');
  host.innerHTML = html(...whole(source).blocks.map(({ token }) => token));
  const formulas = [...host.querySelectorAll('.math')].map((one) => one.getAttribute('data-source') ?? '');
  for (const one of host.querySelectorAll('.math')) one.replaceWith('∎');
  return { formulas, text: (host.textContent ?? '').replaceAll(/\s+/g, ' ').trim() };
}

describe('a formula', () => {
  test.each([
    ['Inline \\(a_1 + b_1\\) here.', ['\\(a_1 + b_1\\)'], 'Inline ∎ here.'],
    ['\\[\nx = \\frac{1}{2}\n\\]', ['\\[\nx = \\frac{1}{2}\n\\]'], '∎'],
    ['$$\n\\int_0^1 x^2\\,dx\n$$', ['$$\n\\int_0^1 x^2\\,dx\n$$'], '∎'],
    ['Let \\(x\\) be.', ['\\(x\\)'], 'Let ∎ be.'],
    ['The sum:\n$$\na\n= b\n+ c\n$$\nand on.', ['$$\na\n= b\n+ c\n$$'], 'The sum: ∎ and on.'],
    ['The sum:\n\\[\na\n\n+ b_1\n\\]', ['\\[\na\n\n+ b_1\n\\]'], 'The sum: ∎'],
    ['We have $$E = mc^2$$ there.', ['$$E = mc^2$$'], 'We have ∎ there.'],
    ['$x^2$ and $y$, $\\alpha$.', ['$x^2$', '$y$', '$\\alpha$'], '∎ and ∎, ∎.'],
    ['- \\(a*b*c\\)\n- *so \\(d*e\\) it* is', ['\\(a*b*c\\)', '\\(d*e\\)'], '∎ so ∎ it is'],
    ['**\\(x_1\\)：**值 $a_i*b_i*c$', ['\\(x_1\\)', '$a_i*b_i*c$'], '∎：值 ∎'],
    ['| f | n |\n|---|---|\n| \\(|x|\\) | 2 |', ['\\(|x|\\)'], 'f n ∎ 2'],
    ['> \\[ y = 1 \\]', ['\\[ y = 1 \\]'], '∎'],
    ['1. First\n   $$\n   a_n\n   $$', ['$$\na_n\n$$'], 'First∎'],
    [
      '$$\\begin{aligned}a&=b\\\\c&=d\\end{aligned}$$',
      ['$$\\begin{aligned}a&=b\\\\c&=d\\end{aligned}$$'],
      '∎',
    ],
    ['设$x^2$为，$n$个', ['$x^2$', '$n$'], '设∎为，∎个'],
    ['## The $n$-th \\(a_n\\)', ['$n$', '\\(a_n\\)'], 'The ∎-th ∎'],
    ['[the \\(x_1\\)](https://example.com)', ['\\(x_1\\)'], 'the ∎'],
    ['~~\\(a~~b\\)~~ ($k=1$).', ['\\(a~~b\\)', '$k=1$'], '∎ (∎).'],
    ['$\\text{price} = \\$5$', ['$\\text{price} = \\$5$'], '∎'],
    ['$$x$$ and $$y$$', ['$$x$$', '$$y$$'], '∎ and ∎'],
  ])('is found: %s', (source, formulas, text) => {
    expect(found(source)).toEqual({ formulas, text });
  });

  test.each([
    ['It costs $5 and $10.', 'It costs $5 and $10.'],
    ['From $5-$10, US$5 or A$7_0.', 'From $5-$10, US$5 or A$7_0.'],
    ['Set $HOME_DIR and $FOO_BAR, PATH=$A:$B.', 'Set $HOME_DIR and $FOO_BAR, PATH=$A:$B.'],
    ['kill $$ && echo $$', 'kill $$ && echo $$'],
    ['Its number is $$ there.', 'Its number is $$ there.'],
    ['`\\(x\\)` and `$x$`', '\\(x\\) and $x$'],
    ['\\[WIP\\] title', '[WIP] title'],
    ['\\[1\\] and \\[x\\]', '[1] and [x]'],
    ['\\(optional\\) part', '(optional) part'],
    ['Escaped \\$x^2\\$ here', 'Escaped $x^2$ here'],
    ["$('#a_b').on($c)", "$('#a_b').on($c)"],
    ['^foo$ and ^bar$', '^foo$ and ^bar$'],
    ['An open \\(x here', 'An open (x here'],
    ['An open $$x here', 'An open $$x here'],
    ['**Cost: $5** and **$10**', 'Cost: $5 and $10'],
  ])('is not: %s', (source, text) => {
    expect(found(source)).toEqual({ formulas: [], text });
  });

  test('that is open takes nothing from what follows, and shows as it was written', () => {
    const { formulas, text } = found('\\[\nx = 1\n\nAfter **it**.');
    expect(formulas).toEqual(['\\[\nx = 1']);
    expect(text).toBe('∎ After it.');
    expect(found('$$\nx = 1\n\nAfter.').text).toBe('$$ x = 1 After.');
  });

  test('is the same however it has come', () => {
    const source = 'a\n\n\\[\nx = 1\n\n+ y\n\\]\n\nb \\(c_1\\)\n\n$$\nz^2\n$$\n\nd';
    const shown = (of: typeof empty) => of.blocks.map(({ token }) => html(token)).join('');
    let blocks = empty;
    for (let at = 1; at <= source.length; at++) blocks = advance(blocks, source.slice(0, at));
    expect(shown(blocks.unsure ? whole(source) : blocks)).toBe(shown(whole(source)));
    expect(
      whole(source).blocks.flatMap(({ token }) =>
        token.type === 'formula' ? [(token as unknown as Formula).tex] : [],
      ),
    ).toEqual(['x = 1\n\n+ y', 'z^2']);
  });

  test('costs no more than it is long, however many marks have no end', () => {
    for (const bit of ['$', '\\(', '\\[', '$$ ', '$x ', '\\[\n', '\n$$\n', '*a $', '\\(_']) {
      const text = bit.repeat(8_000);
      expect(
        whole(text)
          .blocks.map(({ token }) => token.raw)
          .join(''),
      ).toBe(text);
    }
  });
});

describe('what draws formulas', () => {
  test('makes MathML that every engine draws', () => {
    expect(draw('x=\\frac{1}{2}', true)).toMatch(
      /^<math .*display="block".*<mfrac><mn>1<\/mn><mn>2<\/mn><\/mfrac>/,
    );
    expect(draw('\\mathbb{R}\\mathcal{L}\\mathfrak{a}\\mathbf{x1}', false)).toContain('ℝ');
    expect(draw('\\mathbb{R}\\mathcal{L}\\mathfrak{a}\\mathbf{x}', false)).toMatch(/ℝ.*ℒ.*𝔞.*𝐱/u);
    expect(draw('\\begin{aligned}a&=b\\end{aligned}', true)).toMatch(
      /<mtd class="right">.*<mtd class="left">/,
    );
  });

  test.each([
    '\\href{javascript:alert(1)}{x}',
    '\\url{https://tracker.invalid}',
    '\\includegraphics{https://tracker.invalid/x.png}',
    '\\htmlClass{code}{x}',
    '\\htmlId{app}{x}',
    '\\htmlStyle{position:fixed}{x}',
    '\\htmlData{copy=1}{x}',
    '\\text{<img src=x onerror=alert(1)>}',
    '\\text{</math><script>alert(1)</script>}',
    '\\color{white} x',
    '\\colorbox{black}{x}',
    '\\raisebox{20em}{x}',
    '\\rule{9999em}{9999em}',
  ])('makes nothing that acts, loads or hides: %s', (tex) => {
    const host = document.createElement('div');
    host.innerHTML = draw(tex, true);
    for (const element of host.querySelectorAll('*')) {
      expect(element.namespaceURI).toBe('http://www.w3.org/1998/Math/MathML');
      for (const { name, value } of element.attributes) {
        expect(name).not.toMatch(/^on|^style|href|src|^id$|color|data|background|offset/);
        expect(value, name).not.toMatch(/\d{3,}em/);
      }
    }
  });

  test('refuses macros without end, and shows what it cannot draw as it was written', async () => {
    expect(() => draw('\\def\\a{\\a\\a}\\a', false)).toThrow();
    await drawing.load();
    const host = document.createElement('div');
    host.innerHTML = html(...whole('So \\(\\nosuch{x}\\), and \\(y^2\\).').blocks.map(({ token }) => token));
    const [bad, good] = host.querySelectorAll('.math');
    expect(bad?.textContent).toBe('\\(\\nosuch{x}\\)');
    expect(bad?.getAttribute('title')).toContain('\\nosuch');
    expect(good?.querySelector('math msup')).not.toBeNull();
  });

  test('keeps a macro to the formula that defines it', () => {
    draw('\\gdef\\mine{x}\\mine', false);
    expect(() => draw('\\mine', false)).toThrow();
  });

  test('nobody writes the place of a formula', async () => {
    await drawing.load();
    const host = document.createElement('div');
    host.innerHTML = html(
      ...whole(
        '<span class="place">0</span> `<span class="place">0</span>` [a](# "<span class=place>0</span>") \\(x\\)',
      ).blocks.map(({ token }) => token),
    );
    expect(host.querySelectorAll('.math')).toHaveLength(1);
  });

  test('gives the source to who copies', async () => {
    await drawing.load();
    document.body.innerHTML = html(
      ...whole('So \\(y^2\\) is.\n\n$$\nx\n$$\n\nEnd').blocks.map(({ token }) => token),
    );
    const selection = document.getSelection();
    if (!selection) throw new Error('no selection');
    selection.selectAllChildren(document.body);
    expect(copied(selection)).toBe('So \\(y^2\\) is.\n\n$$\nx\n$$\n\nEnd');
    selection.selectAllChildren(document.querySelector('msup') ?? document.body);
    expect(copied(selection)).toBe('\\(y^2\\)');
    selection.removeAllRanges();
    document.body.replaceChildren();
  });
});

test('spaces have their width, unless they would draw a formula over what stands before it', () => {
  expect(draw('a \\qquad b', true)).toContain('width="2em"');
  expect(draw('a \\kern{-9em} b', true)).not.toContain('width');
});
