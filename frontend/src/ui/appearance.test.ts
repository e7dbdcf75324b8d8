import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { appear } from './appearance';

const root = document.documentElement;
const usual = {
  theme: 'system',
  contrast: 'system',
  textSize: 100,
  motion: 'system',
  textFont: '',
  codeFont: '',
  codeSize: 100,
};
const boot = readFileSync(join(import.meta.dirname, '../../public/appearance.js'), 'utf8');
/** Runs the script as the page does. */
const start = new Function(boot) as () => void;

afterEach(() => {
  appear(usual);
  localStorage.removeItem('deskhand.appearance');
});

test('what is set stands on the root element, and what the system decides does not', () => {
  appear({ ...usual, theme: 'dark', contrast: 'high', textSize: 125, motion: 'none' });
  expect({ ...root.dataset }).toEqual({ theme: 'dark', contrast: 'high', motion: 'none', text: '125' });
  expect(root.style.getPropertyValue('--text-scale')).toBe('1.25');
  appear(usual);
  expect({ ...root.dataset }).toEqual({});
  expect(root.style.getPropertyValue('--text-scale')).toBe('');
});

test('the next start has it before the program answers', () => {
  appear({ ...usual, theme: 'light', textSize: 90, motion: 'none' });
  for (const name of Object.keys(root.dataset)) root.removeAttribute(`data-${name}`);
  root.style.removeProperty('--text-scale');
  start();
  expect({ ...root.dataset }).toEqual({ theme: 'light', motion: 'none', text: '90' });
  expect(root.style.getPropertyValue('--text-scale')).toBe('0.9');
});

test('a look that cannot be read is the usual one', () => {
  for (const kept of ['oops', '{"text":"9000","theme":7}', 'null']) {
    localStorage.setItem('deskhand.appearance', kept);
    start();
    expect(root.style.getPropertyValue('--text-scale')).toBe('');
    expect(root.dataset['theme']).toBe(undefined);
    delete root.dataset['text'];
  }
});

test('fonts of the person stand before the built-in ones, now and at the next start', () => {
  const names = ['--own-font', '--own-mono', '--code-scale'];
  const now = () => names.map((name) => root.style.getPropertyValue(name));
  const wanted = ['"Noto Sans", "Inter Variable"', '"Fira Code", "JetBrains Mono Variable"', '1.1'];
  appear({ ...usual, textFont: 'Noto Sans', codeFont: 'Fira Code', codeSize: 110 });
  expect(now()).toEqual(wanted);
  for (const name of names) root.style.removeProperty(name);
  start();
  expect(now()).toEqual(wanted);
  appear(usual);
  expect(now()).toEqual(['', '', '']);
  localStorage.setItem('deskhand.appearance', '{"font":"a\\"; x","mono":7,"code":"9000"}');
  start();
  expect(now()).toEqual(['', '', '']);
});
