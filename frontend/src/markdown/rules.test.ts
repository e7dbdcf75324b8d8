import { beforeAll, describe, expect, test } from 'vitest';
import { advance, empty, whole, type Blocks } from './blocks';
import { extras } from './late';
import { html } from './render';

beforeAll(() => extras.load());

const shown = ({ blocks }: Blocks): string =>
  blocks
    .filter((block) => block.token.type !== 'space')
    .map((block) => html(block.token))
    .join('')
    .replaceAll('\n', ' ')
    .trim();
const read = (source: string) => shown(whole(source));

/** Parses a text character by character, and returns its rendering before and after its end. */
function typed(source: string): { before: string; after: string } {
  let blocks = empty;
  for (let at = 1; at <= source.length; at++) blocks = advance(blocks, source.slice(0, at));
  return { before: shown(blocks), after: shown(blocks.unsure ? whole(source) : blocks) };
}

describe('emphasis beside the punctuation of Chinese, Japanese and Korean', () => {
  test.each([
    ['**重要：**请注意。', '<strong>重要：</strong>请注意。'],
    ['* **免费：**不需要付费使用', '<strong>免费：</strong>不需要'],
    ['含**「重点」**内容。', '含<strong>「重点」</strong>内容。'],
    ['**これは「引用」**です。', '<strong>これは「引用」</strong>です。'],
    ['普通的**加粗**文字。', '普通的<strong>加粗</strong>文字。'],
    ['**"강조"**는 여기', '<strong>&quot;강조&quot;</strong>는'],
    ['**(주의)**를 보세요', '<strong>(주의)</strong>를'],
    ['使用**（推荐）**npm', '使用<strong>（推荐）</strong>npm'],
    ['这是*「斜体」*文字', '这是<em>「斜体」</em>文字'],
    ['删除~~（旧的）~~内容', '删除<del>（旧的）</del>内容'],
    ['删除~~旧的。~~然后', '删除<del>旧的。</del>然后'],
    ['***非常重要！***这样', '<em><strong>非常重要！</strong></em>这样'],
    ['**『二重』**と**【括弧】**の', '<strong>『二重』</strong>と<strong>【括弧】</strong>の'],
    ['他说**“你好”**然后走了', '他说<strong>“你好”</strong>然后'],
    ['**完成✅**然后', '<strong>完成✅</strong>然后'],
    ['运行**`npm i`**即可', '运行<strong><code>npm i</code></strong>即可'],
    ['见**[文档](https://example.com/)**。', '<strong><a href="https://example.com/"'],
    ['[**重要：**请看](https://example.com/)', '><strong>重要：</strong>请看</a>'],
    ['## **第一章：**开始', '<h2><strong>第一章：</strong>开始</h2>'],
    ['| 名 |\n|---|\n| **甲：**乙 |', '<td><strong>甲：</strong>乙</td>'],
    ['1. **步骤一：**安装\n   - **注意：**先备份', '<strong>注意：</strong>先备份'],
    ['> **提示：**好的', '<strong>提示：</strong>好的'],
    ['__重点：__请看', '<strong>重点：</strong>请看'],
    ['**重要:**请', '<strong>重要:</strong>请'],
    ['这是**「甲」和「乙」**，好', '<strong>「甲」和「乙」</strong>，好'],
    ['**사용법:**은 간단', '<strong>사용법:</strong>은'],
    ['**「*斜体*」**は', '<strong>「<em>斜体</em>」</strong>は'],
    ['（**注意**）', '（<strong>注意</strong>）'],
    ['**𠮷野家。**です', '<strong>𠮷野家。</strong>です'],
  ])('stands where it is written: %s', (source, want) => {
    expect(read(source)).toContain(want);
    expect(typed(source).after).toContain(want);
  });

  test.each([
    ['a**"b"**c', 'a**"b"**c'],
    ['snake_case_name 名', 'snake_case_name 名'],
    ['2 * 3 * 4', '2 * 3 * 4'],
    ['**not closed', '**not closed'],
    ['** 重要 **', '** 重要 **'],
    ['名*', '名*'],
  ])('is that of CommonMark elsewhere: %s', (source, want) => {
    expect(read(source).replaceAll('&quot;', '"')).toBe(`<p>${want}</p>`);
  });

  test.each([
    ['请看 https://example.com。然后', 'https://example.com', '。然后'],
    ['（https://example.com/a）', 'https://example.com/a', '）'],
    ['看https://example.com/a，b', 'https://example.com/a', '，b'],
    ['「https://example.com/?q=1」', 'https://example.com/?q=1', '」'],
    ['https://example.com然后', 'https://example.com', '然后'],
    ['https://ja.wikipedia.org/wiki/日本、東京', 'https://ja.wikipedia.org/wiki/日本', '、東京'],
  ])('an address ends before it: %s', (source, address, after) => {
    const host = document.createElement('div');
    host.innerHTML = read(source);
    expect(host.querySelector('a')?.textContent).toBe(address);
    expect(host.querySelector('a')?.nextSibling?.textContent).toBe(after);
  });
});

describe('a file of Markdown between fences', () => {
  const inner = '# Tool\n\n```bash\nnpm i tool\n```\n\nMore of the file.\n';
  const after = '\n\nThat is **all**.';

  test.each([
    ['with the fences of its own', `\`\`\`markdown\n${inner}\`\`\`${after}`, inner],
    ['by the short name', `\`\`\`md\n${inner}\`\`\`${after}`, inner],
    ['by its own name', `\`\`\`README.md\n${inner}\`\`\`${after}`, inner],
    ['with a title', `\`\`\`markdown title="a.md"\n${inner}\`\`\`${after}`, inner],
    ['between longer fences', `\`\`\`\`md\n${inner}\`\`\`\`${after}`, inner],
    ['between tildes', `~~~md\n${inner}~~~${after}`, inner],
    [
      'with tildes in tildes',
      `~~~md\n${inner.replaceAll('```', '~~~')}~~~${after}`,
      inner.replaceAll('```', '~~~'),
    ],
    ['with two blocks', `\`\`\`md\n${inner}${inner}\`\`\`${after}`, inner + inner],
    [
      'with a file in it',
      `\`\`\`md\n\`\`\`md\n\`\`\`js\nx\n\`\`\`\n\`\`\`\n\`\`\`${after}`,
      '```md\n```js\nx\n```\n```\n',
    ],
    [
      'with a block in a list',
      `\`\`\`md\n- a\n     \`\`\`sh\n     ls\n     \`\`\`\n\`\`\`${after}`,
      '- a\n     ```sh\n     ls\n     ```\n',
    ],
    ['without any', `\`\`\`md\n# Tool\n\`\`\`${after}`, '# Tool\n'],
  ])('%s is one block, and what follows is text', (_, source, want) => {
    for (const blocks of [whole(source), advance(empty, source)]) {
      const [first, ...more] = blocks.blocks.filter(({ token }) => token.type !== 'space');
      expect(first?.token).toMatchObject({ type: 'code', text: want.replace(/\n$/, '') });
      expect(more.map(({ token }) => token.type)).toEqual(['paragraph']);
    }
    expect(typed(source).before).toContain('<strong>all</strong>');
    expect(typed(source).after).toContain('<strong>all</strong>');
  });

  test('is code to its last sign while it grows, and what follows its fence is settled', () => {
    const source = `\`\`\`md\n${inner}`;
    for (let at = 6; at <= source.length; at++) {
      const { blocks } = advance(empty, source.slice(0, at));
      expect(blocks.map(({ token }) => token.type)).toEqual(['code']);
    }
    const { blocks, finished } = advance(empty, `${source}\`\`\`${after}\n\nx`);
    expect(blocks.map(({ token }) => token.type)).toEqual([
      'code',
      'space',
      'paragraph',
      'space',
      'paragraph',
    ]);
    expect(finished).toBeGreaterThan(2);
  });

  test('whose inner block was never ended ends where CommonMark ends it', () => {
    const source = `\`\`\`md\n# Tool\n\`\`\`bash\nnpm i\n\`\`\`${after}`;
    expect(typed(source).before).not.toContain('<strong>all</strong>');
    expect(typed(source).after).toContain('<strong>all</strong>');
    expect(typed(source).after).toBe(read(source));
  });

  test('in a list and in a quotation is one block', () => {
    const list = `- step\n  \`\`\`md\n  # T\n  \`\`\`sh\n  ls\n  \`\`\`\n  more\n  \`\`\`\n- **next**`;
    expect(read(list)).toContain('<code data-language="markdown"># T ```sh ls ``` more </code>');
    expect(read(list)).toContain('<strong>next</strong>');
    const quoted = list
      .split('\n')
      .slice(1, -1)
      .map((line) => `> ${line.trim()}`)
      .join('\n');
    expect(read(`${quoted}\n\n**after**`)).toContain('more </code>');
  });

  test('is no matter of other languages', () => {
    expect(read('```sh\ncat <<E\n```bash\n```\n\n**after**')).toContain('<strong>after</strong>');
  });
});

describe('a table', () => {
  const cells = (source: string): string[][] => {
    const host = document.createElement('div');
    host.innerHTML = html(...whole(source).blocks.map(({ token }) => token));
    return [...host.querySelectorAll('tr')].map((row) => [...row.children].map((cell) => cell.innerHTML));
  };

  test.each([
    ['| `a|b` | either |', ['<code>a|b</code>', 'either']],
    ['| `a || b` | or |', ['<code>a || b</code>', 'or']],
    ['| ``x | y`` | z', ['<code>x | y</code>', 'z']],
    ['| `a\\|b` | escaped |', ['<code>a|b</code>', 'escaped']],
    ['| a \\| b | words |', ['a | b', 'words']],
    ['`ls | wc` | counts', ['<code>ls | wc</code>', 'counts']],
    ['| one | two | three |', ['one', 'two | three']],
    ['| one | two | `a|b` |', ['one', 'two | <code>a|b</code>']],
    ['| one |', ['one', '']],
    ['| | two |', ['', 'two']],
    ['| one | two |', ['one', 'two']],
  ])('keeps all that a row says: %s', (row, want) => {
    const table = `| Form | Meaning |\n|---|---|\n${row}\n`;
    expect(cells(table)[1]).toEqual(want);
    expect(typed(`${table}\nAfter **it**.`).before).toContain('<strong>it</strong>');
  });

  test('has the columns of the line below its head', () => {
    expect(cells('| `a|b` | c |\n|---|:-:|\n| 1 | 2 |')).toEqual([
      ['<code>a|b</code>', 'c'],
      ['1', '2'],
    ]);
  });

  test('takes nothing from what stands below it', () => {
    const source = '| a | b |\n|---|---|\n| `x|y` | 2 | 3 |\n\n\nBelow.\n';
    expect(
      whole(source)
        .blocks.map(({ raw }) => raw)
        .join(''),
    ).toBe(source);
  });
});

describe('what would not be seen', () => {
  test.each([
    ['[^1]: word', 'word'],
    ['Text[^1].\n\n[^1]: https://example.com/a', 'https://example.com/a'],
    ['Text[^1].', '[^1]'],
    ['&lt;b&gt; &amp; &copy;', '<b> & ©'],
    ['- [ ] open\n- [x] done', '☑ done'],
    ['<thinking>so</thinking>', '<thinking>so</thinking>'],
    ['<!-- never closed\n\n**words**', '<!-- never closed'],
    ['<!-- never closed\n\n**words**', 'words'],
    ['1. a\n 2. b\n   - c', 'c'],
  ])('is: %s', (source, want) => {
    const host = document.createElement('div');
    host.innerHTML = read(source);
    expect(host.textContent).toContain(want);
  });
});
