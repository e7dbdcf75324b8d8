import { afterEach, expect, test } from 'vitest';
import { rangesIn } from './highlight';
import { termsOf } from './words';

function found(html: string, query: string): string[] {
  document.body.innerHTML = html;
  return rangesIn(document.body, termsOf(query)).map(String);
}

afterEach(() => {
  document.body.innerHTML = '';
});

test('words go on over what is emphasised, and end with their paragraph', () => {
  expect(found('<p>light<em>house</em> keeper</p>', 'lighthouse')).toEqual(['lighthouse']);
  expect(found('<p>light</p><p>house</p>', 'lighthouse')).toEqual([]);
  expect(found('<span>light</span><span>house</span>', 'house')).toEqual(['house']);
});

test('a phrase goes over paragraphs, as it does in the index', () => {
  expect(found('<p>a red <b>door</b></p><p>stands</p>', '"red door stands"')).toHaveLength(1);
});

test('what nobody reads is not found', () => {
  const hidden = '<p>door<time>door</time><span class="visually-hidden">door</span></p>';
  expect(found(hidden, 'door')).toEqual(['door']);
});

test('the text is left as it is', () => {
  const html = '<p>a <em>red</em> door</p>';
  found(html, 'red door');
  expect(document.body.innerHTML).toBe(html);
});
