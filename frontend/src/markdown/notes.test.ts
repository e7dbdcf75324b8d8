import { flushSync, mount, unmount } from 'svelte';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { advance, empty, whole } from './blocks';
import { bare } from './bare';
import { extras } from './late';
import Markdown from './Markdown.svelte';
import { html } from './render';

beforeAll(() => extras.load());
beforeEach(() => document.body.replaceChildren());

function render(source: string): HTMLElement {
  const host = document.createElement('div');
  host.innerHTML = html(...whole(source).blocks.map(({ token }) => token));
  return host;
}

describe('footnotes', () => {
  const text =
    'One[^b] and two[^a], one again[^b].\n\n[^a]: The **second**.\n[^b]: The first,\n    which goes on.\n';

  test('are counted in the order of the text, and stand where they were written', () => {
    const host = render(text);
    expect([...host.querySelectorAll('sup button')].map((one) => one.textContent)).toEqual(['1', '2', '1']);
    const notes = [...host.querySelectorAll('.note')].map((one) => one.textContent?.replace(/\s+/g, ' '));
    expect(notes).toEqual(['2The second. ↩', '1The first, which goes on. ↩']);
    expect(host.querySelector('.note strong')?.textContent).toBe('second');
  });

  test('that are not defined are text', () => {
    expect(render('A class [^a-z] and a note[^1].').textContent).toBe('A class [^a-z] and a note[^1].\n');
  });

  test('do nothing, whatever their names are', () => {
    const host = render('x[^"onclick=alert(1)]\n\n[^"onclick=alert(1)]: <img src=x onerror=alert(1)>');
    expect(host.querySelector('img, [onclick], script')).toBeNull();
    expect(host.querySelector('[data-note]')?.getAttribute('data-note')).toBe('"onclick=alert(1)');
  });

  test('that stream are resolved when the text has ended', () => {
    const streamed = advance(advance(empty, 'One[^1].\n\nMore.\n\n'), 'One[^1].\n\nMore.\n\n[^1]: There.');
    expect(streamed.unsure).toBe(true);
    expect(render('One[^1].\n\nMore.\n\n[^1]: There.').querySelector('sup')).not.toBeNull();
  });

  test('are gone to, and back', () => {
    const seen: string[] = [];
    vi.spyOn(HTMLElement.prototype, 'focus').mockImplementation(function (this: HTMLElement) {
      seen.push(this.className);
    });
    const component = mount(Markdown, { target: document.body, props: { text } });
    flushSync();
    document.querySelector<HTMLElement>('[data-note]')?.click();
    document.querySelector<HTMLElement>('[data-back]')?.click();
    expect(seen).toEqual(['note', 'ref']);
    void unmount(component);
  });
});

describe('a fold', () => {
  const text =
    '<details>\n<summary>What <b>I</b> ran</summary>\n\n```sh\necho "</details>"\n```\n\n<details open><summary>In it</summary>\nMore\n</details>\n\n- a\n</details>\n\nAfter.';

  test('has Markdown in it, and folds', () => {
    const host = render(text);
    expect([...host.children].map((one) => one.localName)).toEqual(['details', 'p']);
    const [outer, inner] = host.querySelectorAll('details');
    expect([outer?.open, inner?.open]).toEqual([false, true]);
    expect(outer?.querySelector('summary')?.innerHTML).toBe('What <b>I</b> ran');
    expect(host.querySelector('details .code code')?.textContent).toBe('echo "</details>"\n');
    expect(host.querySelector('details li')?.textContent).toBe('a');
  });

  test('without an end is open to the end of the text', () => {
    const host = render('<details>\n<summary>S</summary>\n\nwords');
    expect(host.querySelector('details')?.open).toBe(true);
    expect(host.querySelector('.inside')?.textContent).toBe('words\n');
  });

  test('does nothing', () => {
    const host = render(
      '<details ontoggle="alert(1)" open style="x"><summary onclick="alert(1)">a</summary><img src=x onerror=alert(1)></details>',
    );
    expect(host.querySelector('details')?.getAttributeNames()).toEqual(['open']);
    expect(host.querySelector('img, [onclick], [onerror]')).toBeNull();
    expect(host.textContent).toContain('onerror=alert(1)');
  });

  test('within many others is read to a depth, and not forever', () => {
    const host = render('<details>\n'.repeat(3_000));
    expect(host.querySelectorAll('details').length).toBeLessThan(100);
    expect(host.textContent).toContain('<details>');
  });
});

test('a fence of math is a formula', () => {
  const host = render('```math\na^2\n```');
  expect(host.querySelector('.math.display')?.getAttribute('data-source')).toBe('```math\na^2\n```');
});

test('a diagram is drawn without what it says about its drawing, and without tags', () => {
  const source =
    '---\nconfig:\n  theme: x\n---\n%%{init: {"a": 1}}%%\nflowchart LR\n  A["a<br/>b"] --> B["<img src=x>"]';
  expect(bare(source)).toBe('flowchart LR\n  A["a<br/>b"] --> B["#lt;img src=x#gt;"]');
  expect(bare('classDiagram\n  A <|-- B\n  <<interface>> A')).toBe(
    'classDiagram\n  A <|-- B\n  <<interface>> A',
  );
});
