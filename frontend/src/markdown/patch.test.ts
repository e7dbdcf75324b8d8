import { afterEach, expect, test } from 'vitest';
import { lex } from './rules';
import { patch, say } from './patch';
import { html } from './render';

afterEach(() => document.body.replaceChildren());

const text = `A paragraph with **bold words**, \`code\`, [a link](https://example.com/some/where?a=b) and <b>a tag</b>,
a second line &amp; more, ~~no~~ *yes **and** no*.

> A quote
> that goes on

# A heading with \`code\`

Another paragraph, "quoted" – and — dashed… ![picture](https://example.com/a.png) end`;

test('whatever HTML there was, it becomes what it is to be', () => {
  const element = document.createElement('div');
  const wanted = document.createElement('div');
  const ends = [1, 3, 7].flatMap((step) =>
    Array.from({ length: Math.floor(text.length / step) }, (_, n) => (n + 1) * step),
  );
  // And backwards, so that elements are removed too.
  for (const end of [...ends, ...ends.filter((_, n) => n % 10 === 0).reverse()]) {
    const now = html(...lex(text.slice(0, end), {}));
    patch(element, now);
    wanted.innerHTML = now;
    expect(element.innerHTML).toBe(wanted.innerHTML);
  }
});

test('what stays is the same as before, and a text that grows is added to', () => {
  const element = document.createElement('div');
  patch(element, '<p>One <b>two</b> thr</p>');
  const paragraph = element.firstElementChild;
  const bold = paragraph?.querySelector('b');
  const last = paragraph?.lastChild;
  patch(element, '<p>One <b>two</b> three <i>four</i></p><p>Five</p>');
  expect(element.innerHTML).toBe('<p>One <b>two</b> three <i>four</i></p><p>Five</p>');
  expect(element.firstElementChild).toBe(paragraph);
  expect(paragraph?.querySelector('b')).toBe(bold);
  expect(paragraph?.childNodes[2]).toBe(last);
});

test('an element that is another one, by its name or by what it says of itself, is put in its place', () => {
  const element = document.createElement('div');
  patch(element, '<p>a <a href="https://a.example/">x</a></p>');
  const [paragraph, link] = [element.firstElementChild, element.querySelector('a')];
  patch(element, '<p>a <a href="https://b.example/">x</a></p>');
  expect(element.firstElementChild).toBe(paragraph);
  expect(element.querySelector('a')).not.toBe(link);
  expect(element.querySelector('a')?.href).toBe('https://b.example/');
  patch(element, '<h1>a</h1>');
  expect(element.innerHTML).toBe('<h1>a</h1>');
  patch(element, '');
  expect(element.innerHTML).toBe('');
});

test('what is selected stays so, also where markup ends behind it, or more comes before the end of a line', () => {
  const element = document.createElement('div');
  document.body.replaceChildren(element);
  patch(element, '<p>Select these and **bold</p>');
  const words = element.querySelector('p')?.firstChild as Text;
  document.getSelection()?.setBaseAndExtent(words, 7, words, 12);
  patch(element, '<p>Select these and <strong>bold</strong></p>');
  expect(element.innerHTML).toBe('<p>Select these and <strong>bold</strong></p>');
  expect(document.getSelection()?.toString()).toBe('these');
  const code = document.createTextNode('one\ntwo thr\n');
  document.body.append(code);
  document.getSelection()?.setBaseAndExtent(code, 4, code, 7);
  say(code, 'one\ntwo three\nfour\n');
  expect(code.data).toBe('one\ntwo three\nfour\n');
  expect(document.getSelection()?.toString()).toBe('two');
  say(code, 'one\n');
  expect(code.data).toBe('one\n');
});
