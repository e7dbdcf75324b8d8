import { flushSync, mount, unmount } from 'svelte';
import { expect, test } from 'vitest';
import type { Line } from './highlight';
import Page from './Page.svelte';

test('lines of a page that have their colours are left alone when more come', () => {
  const host = document.createElement('div');
  const one: Line = [
    ['tok-keyword', 'let'],
    ['', ' a'],
  ];
  const two: Line = [
    ['tok-keyword', 'let'],
    ['', ' b'],
  ];
  let text = $state('let a\nlet b\nle');
  let lines = $state.raw([one]);
  const props = {
    get text() {
      return text;
    },
    get lines() {
      return lines;
    },
  };
  const page = mount(Page, { target: host, props });
  flushSync();
  const first = host.querySelector('span.tok-keyword');
  expect([host.textContent, host.querySelectorAll('span.tok-keyword').length]).toEqual([
    'let a\nlet b\nle',
    1,
  ]);
  lines = [one, two];
  text = 'let a\nlet b\nlet c\n';
  flushSync();
  expect([host.textContent, host.querySelectorAll('span.tok-keyword').length]).toEqual([text, 2]);
  expect(host.querySelector('span.tok-keyword')).toBe(first);
  lines = [];
  flushSync();
  expect([host.textContent, host.querySelectorAll('span.tok-keyword').length]).toEqual([text, 0]);
  void unmount(page);
});
