// @vitest-environment jsdom
import { afterEach, expect, test } from 'vitest';
import { holdHeight, little, prune } from './leave';

const sizeOf = (element: Element) => element.getElementsByTagName('*').length;

afterEach(() => document.body.replaceChildren());

/** A long answer as in the page: paragraphs, coloured code in pages, tables. */
function answer(parts: number): HTMLElement {
  const row = document.createElement('div');
  const page = `<span class="page">${'<span>if</span> err\n'.repeat(120)}</span>`;
  const table = `<div><table><thead><tr><th>a</th></tr></thead><tbody>${'<tr><td><code>x</code></td><td>y</td></tr>'.repeat(60)}</tbody></table></div>`;
  const part = `<h2>Part</h2><p>${'<em>a</em> b '.repeat(30)}</p><div class="code"><div><span></span><button></button></div><pre><code>${page.repeat(6)}</code></pre></div>${table}`;
  row.innerHTML = `<article><div class="markdown">${part.repeat(parts)}</div></article>`;
  return row;
}

test('a long answer goes in pieces, from its end, until little is left', () => {
  const row = answer(2);
  document.body.append(row);
  const first = row.querySelector('.markdown')?.firstElementChild;
  const whole = sizeOf(row);
  expect(whole).toBeGreaterThan(1_900);
  let left = whole;
  let frames = 0;
  for (let done = false; !done; frames++) {
    done = prune(row, () => true);
    const now = sizeOf(row);
    expect(left - now).toBeLessThanOrEqual(little);
    if (!done) expect(now).toBeLessThan(left);
    left = now;
  }
  expect(left).toBeLessThanOrEqual(little);
  expect(frames).toBeGreaterThan(12);
  expect(first?.isConnected).toBe(true);
});

test('what is little, or of one piece, goes with its row', () => {
  const small = answer(0);
  small.innerHTML = '<p>a</p>';
  expect(prune(small, () => true)).toBe(true);
  expect(small.innerHTML).toBe('<p>a</p>');
  const flat = document.createElement('div');
  flat.innerHTML = '<b></b>'.repeat(2 * little);
  expect(prune(flat, () => true)).toBe(true);
});

test('the row keeps its place meanwhile', () => {
  const row = answer(1);
  document.body.replaceChildren(row, document.createElement('div'));
  holdHeight(row);
  expect(row.style.height).toBe('0px'); // nothing has a height in jsdom
  row.style.height = '7px';
  holdHeight(row); // a second call changes nothing
  expect(row.style.height).toBe('7px');
});
