import { expect, test } from 'vitest';
import { inPages, linesOfPage } from './pages';

test('pages hold all of the text, and those that are full do not change', () => {
  const line = (n: number) => `line ${n}`;
  const text = (count: number) => Array.from({ length: count }, (_, n) => line(n)).join('\n');
  expect(inPages('')).toEqual(['\n']);
  for (const count of [1, linesOfPage - 1, linesOfPage, linesOfPage + 1, 3 * linesOfPage + 5]) {
    const pages = inPages(text(count));
    expect(pages.join('')).toBe(`${text(count)}\n`);
    expect(pages).toHaveLength(Math.ceil(count / linesOfPage));
  }
  expect(inPages(text(200))[0]).toBe(inPages(text(100))[0]);
});
