import { describe, expect, test } from 'vitest';
import { whole } from './blocks';
import { clean, html, purifier } from './render';

function render(source: string): HTMLElement {
  const host = document.createElement('div');
  host.innerHTML = whole(source)
    .blocks.filter((block) => block.token.type !== 'space')
    .map((block) => html(block.token))
    .join('');
  return host;
}

describe('what an agent writes never becomes', () => {
  test.each([
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    'text <img src="https://tracker.invalid/x.png"> text',
    '<iframe src="https://tracker.invalid"></iframe>',
    '<svg onload=alert(1)></svg>',
    '<style>body{display:none}</style>',
    '<form action="https://tracker.invalid"><input></form>',
    '<a href="javascript:alert(1)">x</a>',
    '<br onclick=alert(1)>',
    '![pixel](https://tracker.invalid/pixel.png)',
    '![pixel](data:image/png;base64,AAAA)',
    '[x](javascript:alert(1))',
    '[x](data:text/html,<script>alert(1)</script>)',
    '[x](file:///etc/passwd)',
    '[x](vbscript:x)',
    '`<img src=x onerror=alert(1)>`',
    '```\n</code></pre><script>alert(1)</script>\n```',
    '```"><img/src=x>\ncode\n```',
  ])('markup that acts: %s', (source) => {
    const host = render(source);
    expect(
      host.querySelector('script, img, iframe, svg, style, form, input, object, embed, link, meta'),
    ).toBeNull();
    for (const element of host.querySelectorAll('*')) {
      for (const { name, value } of element.attributes) {
        expect(name).not.toMatch(/^on|^style$|^src$/);
        if (name === 'href') expect(value).toMatch(/^(https?|mailto):/);
      }
    }
  });
});

test('what the sanitizer is not asked about holds nothing that it would change, and nothing that stays open', () => {
  const bits =
    '<b>,</b>,<i>,</i>,<u>,</u>,<br>,</br>,<hr>,<br onclick=alert(1)>,<img src=x onerror=alert(1)>,&lt;,<x>,<p>,</p>,<ul>,<li>,</li>,</ul>,<table>,<tr>,<td align="left">,<td align="left" onclick="alert(1)">,</td>,</tr>,</table>,<a href="javascript:x">,</a>,<!--,-->,<svg onload=alert(1)>,<B>,words, '.split(
      ',',
    );
  let seed = 7;
  const next = () => (seed = (seed * 1103515245 + 12345) % 2147483648);
  for (let n = 0; n < 300; n++) {
    const source = Array.from({ length: 1 + (n % 6) }, () => bits[(next() >> 8) % bits.length]).join('');
    const host = document.createElement('div');
    host.innerHTML = `${clean(source)}<span id="behind"></span>`;
    expect(host.querySelector('#behind')?.parentElement, source).toBe(host);
    host.lastElementChild?.remove();
    const before = host.innerHTML;
    purifier.sanitize(host, { IN_PLACE: true });
    expect(host.innerHTML, source).toBe(before);
  }
});

test('HTML is shown as it was written, so that nothing disappears', () => {
  expect(render('Use <MyComponent prop="1"> here').textContent?.trim()).toBe(
    'Use <MyComponent prop="1"> here',
  );
  expect(render('<section>\nmore\n</section>').textContent).toContain('<section>\nmore\n</section>');
});

test('harmless inline markup works', () => {
  expect(render('a<br>b <kbd>Esc</kbd>').querySelector('kbd')?.textContent).toBe('Esc');
});

test('links show where they lead, images are links', () => {
  const host = render('[site](https://example.com/a "Title") ![chart](https://example.com/c.png)');
  const [site, chart] = [...host.querySelectorAll('a')];
  expect(site?.title).toBe('Title (https://example.com/a)');
  expect(chart?.getAttribute('href')).toBe('https://example.com/c.png');
  expect(chart?.textContent).toBe('Image: chart');
});

test('a path of the workspace is shown and is no link', () => {
  const host = render('[main.go](src/main.go)');
  expect(host.querySelector('a')).toBeNull();
  expect(host.querySelector('.path')?.textContent).toBe('main.go');
});

test('code keeps its language and can be copied', () => {
  const host = render('```ts title="x"\nlet a = "<b>";\n```');
  expect(host.querySelector('.code-head span')?.textContent).toBe('ts');
  expect(host.querySelector('button[data-copy]')?.getAttribute('aria-label')).toBe('Copy');
  expect(host.querySelector('code')?.textContent).toBe('let a = "<b>";\n');
});

test('tables, tasks and lists', () => {
  expect(render('| a |\n|--:|\n| 1 |').querySelector('td')?.getAttribute('align')).toBe('right');
  expect(render('- [x] done').querySelector('[role=img]')?.getAttribute('aria-label')).toBe('done');
  expect(render('3. three').querySelector('ol')?.getAttribute('start')).toBe('3');
});

test('items with a box to tick are told from others', () => {
  const items = render('- [x] done\n- plain').querySelectorAll('li');
  expect([...items].map((one) => one.className)).toEqual(['task', '']);
  expect(items[0]?.querySelector('.check')).not.toBeNull();
});

test('blocks that go from right to left say so, and others say nothing', () => {
  const text =
    '# כותרת\n\nפסקה `code`\n\n- אחד\n  - שניים\n\n> ציטוט\n\n| א | ב |\n|---|---|\n| ג | ד |\n\nLeft שמאל';
  const host = render(text);
  const told = [...host.querySelectorAll('[dir]')].map(
    (one) => `${one.localName} ${one.getAttribute('dir')}`,
  );
  expect(told).toEqual(['h1 rtl', 'p rtl', 'ul rtl', 'ul rtl', 'blockquote rtl', 'p rtl', 'div rtl']);
  expect(render('- one\n\n> two').querySelector('[dir]')).toBeNull();
});

test('code with a long line has a switch for wrapping, code without does not', () => {
  const inList = (code: string) => render(`- \`\`\`go\n  ${code}\n  \`\`\``);
  expect(inList('x'.repeat(91)).querySelector('button[data-wrap]')?.getAttribute('aria-pressed')).toBe(
    'false',
  );
  expect(inList('x').querySelector('button[data-wrap]')).toBeNull();
  expect(inList('x').querySelector('code')?.getAttribute('data-language')).toBe('go');
});
