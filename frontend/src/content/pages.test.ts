import { expect, test } from 'vitest';
import { sourceOf } from './pages';

const text = Array.from({ length: 9_000 }, (_, n) => `line ${n} ü`).join('\n');

test('the pages of a text are the whole text, and each knows the one before', async () => {
  const source = sourceOf(text);
  let all = '';
  const starts: number[] = [];
  for (let at: number | undefined = 0; at !== undefined;) {
    const page = await source.page(at);
    expect(page.lines).toBe(9_000);
    expect(page.line).toBe(all.split('\n').length);
    if (at > 0) expect(page.previous).toBeGreaterThanOrEqual(starts.at(-1) ?? 0);
    starts.push(at);
    all += page.text;
    at = page.next;
  }
  expect(all).toBe(text);
  expect(starts.length).toBeGreaterThan(2);
});

test('a line without end is parted between characters', async () => {
  const source = sourceOf('😀'.repeat(30_000));
  const page = await source.page(0);
  expect(page.text.length % 2).toBe(0);
  expect(page.next).toBe(page.text.length);
});

test('lines are found whatever their colour and case', async () => {
  const found = await sourceOf('one\n\u001b[31mFA\u001b[1mIL\u001b[0m here\n').find('fail');
  expect(found.items).toEqual([{ offset: 4, line: 2, text: 'FAIL here' }]);
});
