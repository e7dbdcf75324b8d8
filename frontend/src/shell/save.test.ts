import { afterEach, expect, test } from 'vitest';
import { canSave } from './save';

afterEach(() => {
  delete (window as { go?: unknown }).go;
});

test('files are saved in a browser, and not in the window, which would drop them', () => {
  expect(canSave()).toBe(true);
  (window as { go?: unknown }).go = { app: {} };
  expect(canSave()).toBe(false);
});
