import { flushSync } from 'svelte';
import { afterEach, expect, test } from 'vitest';
import { kept, left, Unsaved } from './unsaved.svelte';

afterEach(() => kept.clear());

function form(name: string) {
  const unsaved: { it?: Unsaved<{ text: string }> } = {};
  let text = $state('');
  const close = $effect.root(() => {
    unsaved.it = new Unsaved(name, () => (text === '' ? undefined : { text }));
    text = unsaved.it.left?.text ?? '';
  });
  flushSync();
  return {
    close,
    get text() {
      return text;
    },
    drop: () => unsaved.it?.drop(),
    type: (words: string) => {
      text = words;
      flushSync();
    },
  };
}

test('what is written outlives the form, until it is dropped', () => {
  const first = form('a');
  first.type('half');
  first.close();
  expect(form('b').text).toBe('');
  const again = form('a');
  expect(again.text).toBe('half');
  again.drop();
  again.close();
  expect(form('a').text).toBe('');
});

test('what is emptied again is not kept, and what was dropped can be taken back', () => {
  const first = form('a');
  first.type('half');
  const back = first.drop();
  expect(left('a')).toBeUndefined();
  back?.();
  expect(left('a')).toEqual({ text: 'half' });
  first.type('');
  expect(left('a')).toBeUndefined();
});

test('a form that was left while it was saved drops nothing of one that came after it', () => {
  const first = form('a');
  first.type('half');
  first.close();
  const second = form('a');
  second.type('half and more');
  first.drop();
  expect(left('a')).toEqual({ text: 'half and more' });
});
